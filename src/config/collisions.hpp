#pragma once

#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// Conflicts between entries of one mapping: two with the same MAC, GUID, VF, GPU or interface
/// name in the guest. `crossCheck` finds the same between mappings, except for the names.
std::vector<Problem> collisionsWithin(const Mapping& mapping);

}  // namespace vfpass::config
