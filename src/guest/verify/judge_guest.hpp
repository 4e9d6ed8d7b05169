#pragma once

#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Settings of the guest's system that its RDMA programs need, whatever the device: `memory-lock`,
/// `kernel-update`.
/// All are warnings at most; what an older probe does not report has no finding. Pure.
std::vector<Finding> judgeGuestSystem(const GuestView& view);

}  // namespace vfpass::verify
