#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan/check_function.hpp"

namespace vfpass::plan {

/// Why the next owner of this function would find what this one has left: it can be reset only with
/// its whole bus, and others there do not go to the same guest. For attach; what is attached stays.
std::vector<Objection> checkReset(const PciFunction& function, const FunctionTerms& terms);

}  // namespace vfpass::plan
