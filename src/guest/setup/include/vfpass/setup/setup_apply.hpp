#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vfpass/guest_setup.hpp"
#include "vfpass/setup/setup_plan.hpp"

namespace vfpass::setup {

/// Access to the guest, and callbacks for messages.
struct SetupTools {
  agent::Agent& agent;
  std::string root;  ///< prefix of every path in the guest (for tests; otherwise empty)
  std::function<void(const std::string&)> say;   ///< each step, for --verbose
  std::function<void(const std::string&)> warn;  ///< failures that do not stop the set-up
  /// Called before each step; may throw Cancelled, which rolls back the set-up.
  std::function<void()> checkpoint = {};
};

/// The guest's state, with the files that planning needs, and its record of the original state.
struct ObservedGuest {
  SetupView view;
  SetupRecord record;
};

/// Reads the guest's state. Throws AgentUnavailable, and Error when its record is invalid.
ObservedGuest observeGuest(const SetupTools& tools, const DesiredSetup& desired);

/// Makes the plan's changes: writes the record of the original state, replaces each file by rename,
/// reloads the programs that read them, and waits until the interfaces match the plan. On failure
/// all changes are rolled back before the error is thrown; if the rollback fails too, the message
/// says so.
void applySetup(const SetupTools& tools, const SetupPlan& plan);

/// The state of a port after the plan's changes. Addresses outside the plan stay as they are now: a
/// network manager may have added or removed some.
NetdevState expectedState(const SetupPort& port, const NetdevState& now);

/// The first port that differs from the plan, and its missing changes; empty: none differs.
std::string pendingChanges(const SetupPlan& plan, const SetupView& view);

/// The addresses that a port loses and gets: `-10.0.0.1/24`, `+192.168.100.10/24`.
std::vector<std::string> addressChanges(const SetupPort& port);

/// Text for each change of a port: `name ens7 -> rail0`, `mtu 1500 -> 9000`, `address
/// +192.168.100.10/24`.
std::vector<std::string> describeChanges(const SetupPort& port);

/// A file's mode as four octal digits: `0644`.
std::string octal(unsigned mode);

/// The report on a plan. The caller fills in the domain and `applied`.
GuestSetupReport describeSetup(const SetupPlan& plan);

}  // namespace vfpass::setup
