#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/guest/host_side.hpp"

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

/// How near the two are to each other in the guest's eyes, by which NCCL decides, against the tree
/// that the domain's XML describes and the way on the host (`way`; nullopt: not known). Also what
/// the guest sees of ACS and ATS, which only informs. Pure.
std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const NearestGpu& gpu,
                                   const std::optional<GpuWay>& way);

}  // namespace vfpass::guest
