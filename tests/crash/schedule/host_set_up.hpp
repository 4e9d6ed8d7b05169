#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace vfpass::crash {

/// A host on which schedules run, and its state before anybody has done anything.
struct HostSetUp {
  std::string name;
  std::vector<std::string> vms;
  std::unique_ptr<World> world;
  std::string state;          ///< its fingerprint
  std::string rebootedState;  ///< after a reboot
  HostFiles runFiles;         ///< a copy of its files, which runs change

  /// The same files as the host has, whatever the last run did.
  [[nodiscard]] const HostFiles& filesForRun() const;
};

/// `vfs`: three VMs, each with a VF of one PF that has four. `absent`: two VMs with a VF of a PF
/// that has none. `two`: three VMs, each with a VF of two PFs. `function`: two VMs with the same
/// GPU.
std::vector<HostSetUp> makeHosts(const std::filesystem::path& scratch);

}  // namespace vfpass::crash
