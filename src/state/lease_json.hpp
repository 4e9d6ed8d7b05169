#pragma once

#include <string>
#include <string_view>

#include "vfpass/lease.hpp"

namespace vfpass::state {

/// The whole lease, including state and boot, as one line of JSON.
std::string leaseToJson(const Lease& lease);
/// The exact inverse. Throws Error for a record of a newer version, CorruptDatabase for invalid
/// JSON.
Lease leaseFromJson(std::string_view text);

}  // namespace vfpass::state
