#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/guest/host_side.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::guest {

/// Is the leased VF in this domain's hands? The host's own sight alone: the running domain's XML,
/// the driver, and which process has the VFIO device open. Pure.
Finding judgeHold(const Lease& lease, const DeviceHold& hold);

/// Another VF of the same domain, and what went through it while the probe moved data.
struct OtherVf {
  std::string name;
  std::optional<VfTraffic> before;
  std::optional<VfTraffic> after;
};

/// Could the data have gone through another VF of the domain, whose guest calls it by the leased
/// one's name? Not if that one stood still. Pure.
Finding judgeOthers(const std::string& subject, std::uint64_t claimedBytes,
                    const std::vector<OtherVf>& others);

}  // namespace vfpass::guest
