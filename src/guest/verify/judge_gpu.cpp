#include "judge_guest.hpp"

#include <algorithm>

#include "judge_device.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// How to set the fabric up, or make the driver run without it (NVIDIA's Fabric Manager User Guide).
std::string fabricRemedy(std::optional<NvlinkMode> nvlink, const std::string& guestSetup) {
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
      return "where the fabric manager runs, list the partitions with fmpm -l: the one with these "
             "GPUs has to be active before the VM starts (vfpass activates it if fmpm is installed "
             "on the host; otherwise fmpm -a ID); fabric manager and guest need the same driver "
             "version";
    case NvlinkMode::disabled:
      return "run " + guestSetup +
             ", which writes NVreg_NvLinkDisable=1, and restart the guest; "
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

// `complete`: `view` has all GPUs that are to be judged.
std::optional<Finding> judgeGpuDirect(const GuestView& view, bool complete) {
  const auto without = labelsIf(view, lacksGpuDirect);
  if (without.empty()) {
    return std::nullopt;
  }
  const bool all = complete && std::ranges::all_of(view.gpus, [](const GuestGpu& gpu) {
                     return !gpu.index || lacksGpuDirect(gpu);
                   });
  return Finding{"gpu-rdma",
                 "",
                 all ? Outcome::failed : Outcome::warning,
                 "GPUs with GPUDirect RDMA",
                 "no GPUDirect RDMA (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED is 0): " +
                     join(without, ", "),
                 "use a data center or professional GPU: GeForce cards have no GPUDirect RDMA; or "
                 "set verify: {paths: [host]} in the mapping, as NCCL then uses host memory"};
}

// The finding when the guest's CUDA cannot be used; nullopt if it can. The remedy is ours: of the
// guest's texts only the detail is shown. `nvlink` determines the remedy for error 802
// (CUDA_ERROR_SYSTEM_NOT_READY): the GPU is on a board with NVSwitches, and its NVLink fabric has
// not been set up.
std::optional<Finding> judgeCuda(const GuestView& view, std::optional<NvlinkMode> nvlink,
                                 const std::string& guestSetup) {
  if (view.libcuda && !view.cudaStatus) {
    return std::nullopt;
  }
  const CudaProblem problem = view.cudaProblem.value_or(
      view.cudaStatus ? cudaProblemOf(*view.cudaStatus) : CudaProblem::driverMissing);
  const std::string status =
      view.cudaStatus ? " (CUDA error " + std::to_string(*view.cudaStatus) + ")" : "";
  const std::string detail = view.libcudaDetail.empty() ? "" : ": " + view.libcudaDetail;
  return Finding{"gpu-driver",
                 "",
                 Outcome::failed,
                 "CUDA initializes",
                 describe(problem) + status + detail,
                 problem == CudaProblem::fabricNotReady ? fabricRemedy(nvlink, guestSetup)
                                                        : remedyFor(problem)};
}

// A partition needs a fabric manager and guests' drivers of one version: others have no NVLink, or
// fail with error 802, which the finding behind this one then reports.
std::optional<Finding> judgeFabricVersion(const GuestView& view, std::optional<NvlinkMode> nvlink,
                                          const std::string& fabricManager) {
  constexpr std::size_t longest = 40;
  const std::string driver = view.nvidiaVersion.substr(0, longest);
  if (nvlink != NvlinkMode::partition || fabricManager.empty() || driver.empty() ||
      driver == fabricManager) {
    return std::nullopt;
  }
  return Finding{"gpu-driver",
                 "",
                 Outcome::warning,
                 "the version of the host's fabric manager, " + fabricManager,
                 "NVIDIA's driver " + driver + ": its GPUs may have no NVLink",
                 "install NVIDIA's driver " + fabricManager +
                     " in the guest, or on the host nvidia-fabricmanager in the version of the "
                     "guests while no VM with a partition runs"};
}

std::string stateOf(std::optional<bool> present, const char* whenPresent) {
  return !present ? "not readable" : *present ? whenPresent : "none";
}

Finding services(const std::string& subject, const GuestPciServices& seen) {
  return {"pcie-services",
          subject,
          Outcome::waived,
          "",
          "for information, the guest's view of its NIC: ATS " +
              stateOf(seen.ats, seen.atsEnabled ? "on" : "off") + ", ACS " +
              stateOf(seen.acs, "present") +
              "; only the host's settings take effect (vfpass doctor)",
          ""};
}

bool isNear(const std::string& distance) { return distance == "PIX" || distance == "PXB"; }

// The probe uses NCCL's terms, which have no NODE.
std::string inNcclTerms(const std::string& distance) {
  return distance == "NODE" ? "PHB" : distance;
}

std::string placeRemedy(const TestedGpu& gpu) {
  const auto& path = gpu.path;
  const std::string level = std::string("or set NCCL_NET_GDR_LEVEL=") +
                            (gpu.distance == "PHB" ? "PHB" : "SYS") + " in the guest";
  if (path && !path->inXml.empty() && inNcclTerms(path->inXml) != gpu.distance) {
    return "compare with `vfpass topo --vm`: the tree in the guest differs from the one in its XML";
  }
  if (path && !isNear(path->distance)) {
    return "they are " + path->distance + " apart on the host: give the VM a VF of a PF that is " +
           "nearer to the GPU (`pf: {near: ...}`); " + level;
  }
  return "set topology: mirror in the mapping, shut the VM off, run vfpass attach and start it; " +
         level;
}

Finding distanceFinding(const std::string& subject, const TestedGpu& gpu) {
  const auto& path = gpu.path;
  std::string expected = "NIC and GPU below one switch in the guest: PIX or PXB";
  if (path && !path->inXml.empty()) {
    expected += " (domain XML: " + path->inXml + ", host: " + path->distance + ")";
  }
  const std::string seen = gpu.distance + " to GPU " + nameOf(gpu);
  if (gpu.distance.empty()) {
    return {
        "gpu-distance", subject, Outcome::waived, expected, "the guest reports no distance", ""};
  }
  if (isNear(gpu.distance)) {
    return {"gpu-distance", subject, Outcome::passed, expected, seen, ""};
  }
  return {"gpu-distance",
          subject,
          Outcome::warning,
          expected,
          seen + ": NCCL does not use GPUDirect over this distance",
          placeRemedy(gpu)};
}

// The links of the chain in the guest: the GPU's driver exports its memory, and the NIC's driver
// registers it.
Finding judgePath(const GuestView& view, const GuestView& own, bool complete,
                  const std::string& guestSetup) {
  const bool exported = std::ranges::any_of(own.gpus, &GuestGpu::dmaBuf);
  const std::string refusal = exported ? dmaBufRefusal(own) : "";
  Finding finding{"gpu-path",       "", Outcome::passed, "DMA-BUF or nvidia_peermem",
                  "nvidia_peermem", ""};
  if (exported && refusal.empty()) {
    finding.seen = "DMA-BUF";
    return finding;
  }
  if (view.peerMemory) {
    return finding;
  }
  finding.outcome = complete ? Outcome::failed : Outcome::warning;
  finding.seen = "not supported: " +
                 (exported ? "the GPU's driver exports DMA-BUF, but " + refusal
                           : std::string("the driver does not export DMA-BUF")) +
                 ", and nvidia_peermem is not loaded";
  finding.remedy = exported ? "in the guest: use a kernel of 5.12 or later with "
                              "CONFIG_INFINIBAND_ON_DEMAND_PAGING, or NVIDIA's OFED, so that the "
                              "NIC's driver registers DMA-BUF; or modprobe nvidia_peermem"
                            : gpuModulesRemedy(view, guestSetup);
  return finding;
}

}  // namespace

std::vector<Finding> judgeGpus(const GuestView& view, bool wanted, std::optional<NvlinkMode> nvlink,
                               const std::vector<Lease>& vfs, const std::vector<LeasedGpu>& gpus,
                               const std::string& fabricManager) {
  if (view.gpus.empty() && !wanted) {
    return {{"gpu", "", Outcome::waived, "", "the guest has no GPU", ""}};
  }
  if (view.gpus.empty()) {
    return {{"gpu", "", Outcome::failed, "a GPU in the guest", "none",
             "list it under gpus: in the mapping, then run vfpass attach"}};
  }
  const std::string guestSetup = guestSetupOf(vfs);
  std::vector<Finding> findings;
  if (const auto bars = judgeGpuBars(view, gpus)) {
    findings.push_back(*bars);
  }
  if (const auto different = judgeFabricVersion(view, nvlink, fabricManager)) {
    findings.push_back(*different);
  }
  if (const auto failed = judgeCuda(view, nvlink, guestSetup)) {
    findings.push_back(*failed);
    return findings;
  }
  findings.push_back({"gpu-driver", "", Outcome::passed, "libcuda", "found", ""});
  const GuestView own = viewOfLeased(view, vfs, gpus);
  // GPUs that other devices cannot access as usual. The last finding has failed if RDMA is
  // impossible with every GPU that CUDA can use.
  const bool complete = gpus.size() <= own.gpus.size();
  for (const auto& limit : {judgeMig(own), judgeGpuDirect(own, complete)}) {
    if (limit) {
      findings.push_back(*limit);
    }
  }
  if (findings.back().outcome == Outcome::failed) {
    return findings;
  }
  // Of GPUs whose place is unknown, the guest's others still show what the driver can do.
  const GuestView& shown = own.gpus.empty() ? view : own;
  if (const auto modules = judgeGpuModules(shown, guestSetup)) {
    findings.push_back(*modules);
  }
  if (own.gpus.empty()) {
    findings.push_back({"gpu-path", "", Outcome::notObservable, "DMA-BUF or nvidia_peermem",
                        "not tested: none of the leased GPUs was found in the guest",
                        "see gpu-tested of each GPU"});
    return findings;
  }
  findings.push_back(judgePath(view, own, complete, guestSetup));
  return findings;
}

// A GPU that was not found may have a path that the others lack: those are tried all the same.
bool isGpuUsable(const std::vector<Finding>& gpus) {
  const Finding& last = gpus.back();
  return last.outcome == Outcome::passed ||
         (last.key == "gpu-path" && last.outcome == Outcome::warning);
}

std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const TestedGpu& gpu) {
  std::vector<Finding> findings{distanceFinding(subject, gpu)};
  if (gpu.path && !gpu.path->degraded.empty()) {
    findings.push_back(slowLink(subject, gpu.path->degraded));
  }
  const auto own = view.services.find(nic);
  if (own != view.services.end()) {
    findings.push_back(services(subject, own->second));
  }
  return findings;
}

}  // namespace vfpass::verify
