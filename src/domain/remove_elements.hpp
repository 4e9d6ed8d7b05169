#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// The domain XML without our metadata, devices and controllers. A port with another device behind
/// it stays; if none of the `wanted` leases has it, it loses our alias.
std::string removeElements(std::string_view xml, const std::vector<Lease>& wanted);

}  // namespace vfpass::domain
