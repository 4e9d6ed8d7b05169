#pragma once

#include <optional>
#include <string>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// `gpu-modules`: which of DMA-BUF and nvidia_peermem can work with the flavour and version of
/// NVIDIA's modules, CUDA, the kernel and the RDMA devices, and why the other cannot. A warning if
/// none can. nullopt if the guest does not report NVIDIA's driver. Pure.
std::optional<Finding> judgeGpuModules(const GuestView& view);

/// How to get one of the two to work. Pure.
std::string gpuModulesRemedy(const GuestView& view);

}  // namespace vfpass::verify
