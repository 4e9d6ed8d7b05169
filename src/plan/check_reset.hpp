#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan/check_function.hpp"

namespace vfpass::plan {

/// Problem when this function can be reset only with its bus, and other functions there do not go
/// to the same guest: its next owner could read data left by this one. For attach; a device that is
/// already attached stays.
std::vector<Objection> checkReset(const PciFunction& function, const FunctionTerms& terms);

}  // namespace vfpass::plan
