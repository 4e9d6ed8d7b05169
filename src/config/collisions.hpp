#pragma once

#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// Conflicts between entries of one mapping: two with the same MAC, GUID, VF or GPU. `crossCheck`
/// finds the same between mappings.
std::vector<Problem> collisionsWithin(const Mapping& mapping);

}  // namespace vfpass::config
