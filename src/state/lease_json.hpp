#pragma once

#include <string>
#include <string_view>

#include "vfpass/lease.hpp"

namespace vfpass::state {

/// The whole lease, state and boot included, as one line of JSON.
std::string leaseToJson(const Lease& lease);
/// Exact inverse. Throws Error for a record of a newer version, CorruptDatabase for rubbish.
Lease leaseFromJson(std::string_view text);

}  // namespace vfpass::state
