#include "judge_cuda.hpp"

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

}  // namespace

Finding judgeCudaStatus(int status, const std::string& detail, std::optional<NvlinkMode> nvlink) {
  const std::string expected = "CUDA initializes";
  if (status == cudaNotReady) {
    return {"gpu-driver",
            "",
            Outcome::failed,
            expected,
            "error 802, system not yet initialized: the GPU is on a board with NVSwitches, and its "
            "NVLink fabric is not set up",
            fabricRemedy(nvlink)};
  }
  return {"gpu-driver",
          "",
          Outcome::failed,
          expected,
          "error " + std::to_string(status) + ": " + detail,
          "in the guest: run nvidia-smi, and look for the driver's messages in dmesg"};
}

}  // namespace vfpass::verify
