#pragma once

#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::apply {

/// Whether the device of a lease is the host's although the lease has not ended: an unfinished
/// attach has not plugged it into the running domain yet, or has taken it back, or an unfinished
/// detach has begun to give it back. It must not be scrubbed: only that operation knows its
/// attributes, and does not set them again where it has set them. `open`:
/// Database::openOperations().
bool isHosts(const Lease& lease, const std::vector<state::Operation>& open);

}  // namespace vfpass::apply
