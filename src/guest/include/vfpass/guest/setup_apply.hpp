#pragma once

#include <functional>
#include <string>

#include "vfpass/guest/setup_plan.hpp"

namespace vfpass::guest {

/// How the changes reach the guest.
struct SetupTools {
  Agent& agent;
  std::string root;  ///< before every path of the guest (tests; empty otherwise)
  std::function<void(const std::string&)> say;   ///< each step, for --verbose
  std::function<void(const std::string&)> warn;  ///< what did not work and does not stop the rest
  /// Asked before each step of a set-up; may throw Cancelled, and then all is taken back.
  std::function<void()> checkpoint = {};
};

/// The guest with the files that planning this wish takes, and what it remembers.
struct SetupSight {
  SetupView view;
  SetupRecord record;
};

/// Asks the guest. Throws AgentUnavailable, and Error when its record makes no sense.
SetupSight lookAtGuest(const SetupTools& tools, const SetupWish& wish);

/// Makes the plan's changes: the record of what was there first, each file by rename, then what
/// reads them; and waits until the interfaces are as planned. What fails is thrown after all of it
/// was taken back; if that fails, too, the message says so.
void applySetup(const SetupTools& tools, const SetupPlan& plan);

}  // namespace vfpass::guest
