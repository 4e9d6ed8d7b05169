#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// The GPU whose memory is used with a NIC: the nearest one in the guest that CUDA can use; of
/// equally near ones the first in CUDA's order.
struct NearestGpu {
  int index = 0;         ///< CUDA device index
  std::string name;      ///< from the guest, untrusted
  std::string distance;  ///< PIX, PXB, PHB, SYS; empty: unknown
  bool dmaBuf = false;
};

/// `nic` is a PCI address in the guest. nullopt when CUDA can use no GPU.
std::optional<NearestGpu> nearestGpu(const GuestView& view, const std::string& nic);

/// The finding when nearestGpu() returns none.
Finding noGpuForCuda(const std::string& subject);

/// Judges the distance between NIC and GPU in the guest, which NCCL relies on. Compares it with the
/// tree that the domain's XML describes and with the path on the host (nullopt: unknown). Adds the
/// guest's view of ACS and ATS for information. Pure.
std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const NearestGpu& gpu,
                                   const std::optional<GpuPath>& path);

}  // namespace vfpass::verify
