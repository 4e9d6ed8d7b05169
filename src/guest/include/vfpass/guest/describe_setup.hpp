#pragma once

#include "vfpass/guest/setup_plan.hpp"
#include "vfpass/guest_setup.hpp"

namespace vfpass::guest {

/// The report on a plan. The caller fills in the domain and `applied`.
GuestSetupReport describeSetup(const SetupPlan& plan);

}  // namespace vfpass::guest
