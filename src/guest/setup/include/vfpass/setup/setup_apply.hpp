#pragma once

#include <functional>
#include <string>

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

}  // namespace vfpass::setup
