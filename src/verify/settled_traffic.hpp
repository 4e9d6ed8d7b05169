#pragma once

#include <cstdint>
#include <optional>

#include "vfpass/finding.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// judgeTraffic() for the lease's VF since `before`. Firmware updates counters with a delay, so
/// counters that have not increased enough are read again for up to three seconds.
Finding settledTraffic(const Lease& lease, std::uint64_t claimedBytes,
                       const std::optional<VfTraffic>& before, const ReadTraffic& read);

}  // namespace vfpass::verify
