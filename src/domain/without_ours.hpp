#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// The domain XML without metadata, devices and root ports of ours. A port that a device of
/// somebody else uses stays; if none of the `wanted` leases has it, it stops being ours and loses
/// its alias.
std::string withoutOurs(std::string_view xml, const std::vector<Lease>& wanted);

}  // namespace vfpass::domain
