#pragma once

#include "vfpass/guest_setup.hpp"
#include "vfpass/setup/setup_plan.hpp"

namespace vfpass::setup {

/// The report on a plan. The caller fills in the domain and `applied`.
GuestSetupReport describeSetup(const SetupPlan& plan);

}  // namespace vfpass::setup
