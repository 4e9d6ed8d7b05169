#pragma once

#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Resets functions in parallel and records how that ended for those that are leased. A function
/// whose reset fails goes into quarantine before the error is thrown, so that neither
/// `recover --abandon` nor the end of its lease gives it to another domain.
void resetDevices(const std::vector<ResetFunction>& resets, Tools& tools);

}  // namespace vfpass::apply
