#pragma once

#include "vfpass/guest/setup_plan.hpp"
#include "vfpass/guest_setup.hpp"

namespace vfpass::guest {

/// The plan for people and programs to read; domain and `applied` are the caller's.
GuestSetupReport describeSetup(const SetupPlan& plan);

}  // namespace vfpass::guest
