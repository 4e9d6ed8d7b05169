#pragma once

#include <functional>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace vfpass::crash {

/// A host in a certain state and one command or hook call on it.
struct Scenario {
  std::string name;
  std::function<void(World&)> setUp;
  std::function<Result(World&, const Fault&)> act;
  bool isHook = false;  ///< libvirt calls the hook; it may refuse
  /// The domain that can be started after `act`; empty: none.
  std::string domain = "train0";
};

std::vector<Scenario> attachScenarios();
std::vector<Scenario> detachScenarios();
std::vector<Scenario> guestScenarios();  ///< starts, stops and running guests
std::vector<Scenario> hostScenarios();   ///< without a domain that is started later
/// Devices that a domain has without vfpass, and those that detach leaves to it.
std::vector<Scenario> adoptionScenarios();

std::vector<Scenario> allScenarios();

// Steps that several scenarios share. Each throws if it fails.
void attach(World& world);
void start(World& world);
void stop(World& world);

/// Runs `vfpass WORDS` as the scenario's command.
std::function<Result(World&, const Fault&)> command(std::vector<std::string> words);

}  // namespace vfpass::crash
