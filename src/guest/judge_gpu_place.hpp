#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::guest {

/// The GPU whose memory is used with this NIC: the nearest one in the guest that CUDA knows, in
/// CUDA's order where all are alike.
struct NearestGpu {
  int index = 0;         ///< as CUDA counts
  std::string name;      ///< the guest's word
  std::string distance;  ///< PIX, PXB, PHB, SYS; empty: the guest does not say
  bool dmaBuf = false;
};

/// `nic` is a PCI address in the guest. nullopt when CUDA knows no GPU.
std::optional<NearestGpu> nearestGpu(const GuestView& view, const std::string& nic);

/// What is found where there is none of these.
Finding noGpuForCuda(const std::string& subject);

/// How near the two are to each other in the guest's eyes, by which NCCL decides, and what the
/// guest sees of ACS and ATS, which only informs. Pure.
std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const NearestGpu& gpu);

}  // namespace vfpass::guest
