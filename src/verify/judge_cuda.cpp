#include "judge_cuda.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// How to set the fabric up, or make the driver run without it (NVIDIA's Fabric Manager User Guide).
std::string fabricRemedy(std::optional<NvlinkMode> nvlink) {
  if (!nvlink) {
    return "set `nvlink: all`, `partition` or `disabled` in the mapping, then run `vfpass check`; "
           "if the guest has all GPUs and NVSwitches, run systemctl status nvidia-fabricmanager "
           "there";
  }
  switch (*nvlink) {
    case NvlinkMode::all:
      return "in the guest: systemctl enable --now nvidia-fabricmanager, in the driver's version; "
             "then look at systemctl status nvidia-fabricmanager";
    case NvlinkMode::partition:
      return "where the fabric manager runs, before the VM starts: list the partitions with "
             "fmpm -l and activate the one with these GPUs with fmpm -a ID; fabric manager and "
             "guest need the same driver version";
    case NvlinkMode::disabled:
      return "run `vfpass guest-setup`, which writes NVreg_NvLinkDisable=1, and restart the guest; "
             "then check that NvLinkDisable is 1 in its /proc/driver/nvidia/params";
  }
  return {};
}

// `0000:05:00.0 (NVIDIA GeForce RTX 4090)`
std::string label(const GuestGpu& gpu) {
  return gpu.pci + (gpu.name.empty() ? "" : " (" + gpu.name + ")");
}

template <typename Predicate>
std::vector<std::string> labelsIf(const GuestView& view, Predicate predicate) {
  std::vector<std::string> labels;
  for (const GuestGpu& gpu : view.gpus) {
    if (predicate(gpu)) {
      labels.push_back(label(gpu));
    }
  }
  return labels;
}

bool lacksGpuDirect(const GuestGpu& gpu) { return gpu.gpuDirect == false; }

// NVIDIA's MIG User Guide: GPUDirect RDMA works with GPU instances; P2P between GPUs, by PCI
// Express or NVLink, does not; a CUDA process sees one instance.
std::optional<Finding> judgeMig(const GuestView& view) {
  const auto empty = labelsIf(
      view, [](const GuestGpu& gpu) { return gpu.mig && gpu.migInstances.value_or(1) == 0; });
  if (!empty.empty()) {
    return Finding{"gpu-mig",
                   "",
                   Outcome::warning,
                   "MIG is disabled, or has instances",
                   describe(CudaProblem::migWithoutInstance) + ": " + join(empty, ", "),
                   remedyFor(CudaProblem::migWithoutInstance)};
  }
  const auto split = labelsIf(view, [](const GuestGpu& gpu) { return gpu.mig; });
  if (split.empty()) {
    return std::nullopt;
  }
  return Finding{"gpu-mig",
                 "",
                 Outcome::warning,
                 "whole GPUs",
                 "MIG is enabled: " + join(split, ", ") +
                     "; RDMA reaches the first instance only, CUDA hides the others, and GPUs "
                     "cannot access each other (P2P, NVLink)",
                 "for NCCL between GPUs, disable MIG in the guest (nvidia-smi -mig 0) and restart "
                 "it"};
}

std::optional<Finding> judgeGpuDirect(const GuestView& view) {
  const auto without = labelsIf(view, lacksGpuDirect);
  if (without.empty()) {
    return std::nullopt;
  }
  const bool all = std::ranges::all_of(
      view.gpus, [](const GuestGpu& gpu) { return !gpu.index || lacksGpuDirect(gpu); });
  return Finding{"gpu-rdma",
                 "",
                 all ? Outcome::failed : Outcome::warning,
                 "GPUs with GPUDirect RDMA",
                 "no GPUDirect RDMA (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED is 0): " +
                     join(without, ", "),
                 "use a data center or professional GPU: GeForce cards have no GPUDirect RDMA; or "
                 "set verify: {paths: [host]} in the mapping, as NCCL then uses host memory"};
}

}  // namespace

std::optional<Finding> judgeCuda(const GuestView& view, std::optional<NvlinkMode> nvlink) {
  if (view.libcuda && !view.cudaStatus) {
    return std::nullopt;
  }
  const CudaProblem problem = view.cudaProblem.value_or(
      view.cudaStatus ? cudaProblemOf(*view.cudaStatus) : CudaProblem::driverMissing);
  const std::string status =
      view.cudaStatus ? " (CUDA error " + std::to_string(*view.cudaStatus) + ")" : "";
  const std::string detail = view.libcudaDetail.empty() ? "" : ": " + view.libcudaDetail;
  return Finding{
      "gpu-driver",
      "",
      Outcome::failed,
      "CUDA initializes",
      describe(problem) + status + detail,
      problem == CudaProblem::fabricNotReady ? fabricRemedy(nvlink) : remedyFor(problem)};
}

std::vector<Finding> judgeGpuLimits(const GuestView& view) {
  std::vector<Finding> findings;
  for (const auto& finding : {judgeMig(view), judgeGpuDirect(view)}) {
    if (finding) {
      findings.push_back(*finding);
    }
  }
  return findings;
}

}  // namespace vfpass::verify
