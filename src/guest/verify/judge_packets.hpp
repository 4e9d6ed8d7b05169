#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// `pcie-packets`: MaxReadReq, MaxPayload and Relaxed Ordering. Judges those of the VF's PF, which
/// the host reads and which the VF uses; shows those of the VF (`nic`, its address in the guest)
/// and of the leased GPUs as the guest sees them. A warning at most; waived if the host cannot read
/// the PF's. nullopt if neither side reports any. Pure.
std::optional<Finding> judgePackets(const Lease& lease, const std::string& nic,
                                    const GuestView& view, const HostSide& host,
                                    const std::vector<LeasedGpu>& gpus);

}  // namespace vfpass::verify
