#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// Whether this domain holds the leased VF. Uses the host's view only: the running domain's XML,
/// the driver, and the process that has the VFIO device open. Pure.
Finding judgeHold(const Lease& lease, const DeviceHold& hold);

/// Another VF of the same domain, with its traffic before and after the probe moved data.
struct OtherVf {
  std::string name;
  std::optional<VfTraffic> before;
  std::optional<VfTraffic> after;
};

/// Whether the data may have gone through another VF of the domain, which the guest passes off as
/// the leased one. Counters that moved less than that rule it out. Pure.
Finding judgeOthers(const std::string& subject, std::uint64_t claimedBytes,
                    const std::vector<OtherVf>& others);

}  // namespace vfpass::verify
