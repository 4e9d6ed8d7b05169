#pragma once

#include <cstdint>
#include <optional>

#include "vfpass/finding.hpp"
#include "vfpass/guest/verify.hpp"

namespace vfpass::guest {

/// judgeTraffic of the lease's VF since `before`; firmware counts a little late, so counters that
/// have not moved enough are read again for three seconds.
Finding settledTraffic(const Lease& lease, std::uint64_t claimedBytes,
                       const std::optional<VfTraffic>& before, const VerifyWatch& watch);

}  // namespace vfpass::guest
