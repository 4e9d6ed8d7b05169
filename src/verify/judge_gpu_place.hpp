#pragma once

#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "guest_view.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Judges the distance between NIC and GPU in the guest, which NCCL relies on. Compares it with the
/// tree that the domain's XML describes and with the path on the host, if it is known. Adds the
/// guest's view of ACS and ATS for information. Pure.
std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const TestedGpu& gpu);

}  // namespace vfpass::verify
