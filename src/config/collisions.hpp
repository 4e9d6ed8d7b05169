#pragma once

#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// Mistakes that entries of one mapping have only together: one MAC, GUID or VF twice, one GPU
/// twice. `crossCheck` finds the same between mappings.
std::vector<Problem> collisionsWithin(const Mapping& mapping);

}  // namespace vfpass::config
