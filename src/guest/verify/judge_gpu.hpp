#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::verify {

/// Whether the guest has a GPU that RDMA can reach, and by which mechanism. Waived when `wanted` is
/// false and the guest has none. `nvlink` comes from the mapping and determines the remedy for CUDA
/// error 802. `vfs` and `gpus` are leased to the VM: devices that the guest has otherwise are not
/// judged (viewOfLeased). The last finding has passed if RDMA can use the memory of a GPU; it is
/// not observable if none of the leased ones was found, and a warning if it only concerns those of
/// them that were found.
std::vector<Finding> judgeGpus(const GuestView& view, bool wanted,
                               std::optional<NvlinkMode> nvlink = {},
                               const std::vector<Lease>& vfs = {},
                               const std::vector<LeasedGpu>& gpus = {});

/// Whether GPU memory can be tested after these findings of judgeGpus(): with a GPU that RDMA may
/// reach.
bool isGpuUsable(const std::vector<Finding>& gpus);

/// Judges the distance between NIC and GPU in the guest, which NCCL relies on. Compares it with the
/// tree that the domain's XML describes and with the path on the host, if it is known. Adds the
/// guest's view of ACS and ATS for information. Pure.
std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const TestedGpu& gpu);

}  // namespace vfpass::verify
