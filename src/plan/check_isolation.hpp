#pragma once

#include <vector>

#include "vfpass/plan/check_function.hpp"

namespace vfpass::plan {

/// Problems with the isolation of this function: no IOMMU group, a group with functions that do not
/// go to the same guest, or unsafe interrupts.
std::vector<Objection> checkIsolation(const PciFunction& function, const FunctionTerms& terms);

}  // namespace vfpass::plan
