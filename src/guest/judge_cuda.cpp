#include "judge_cuda.hpp"

namespace vfpass::guest {
namespace {

// What sets the fabric up, or makes the driver do without (NVIDIA's Fabric Manager User Guide).
std::string fabricRemedy(std::optional<NvlinkMode> nvlink) {
  if (!nvlink) {
    return "say in the mapping what becomes of NVLink (`nvlink: all`, `partition` or `disabled`), "
           "then `vfpass check`; with all GPUs and NVSwitches in the guest: systemctl status "
           "nvidia-fabricmanager in the guest";
  }
  switch (*nvlink) {
    case NvlinkMode::all:
      return "in the guest: systemctl enable --now nvidia-fabricmanager, of the driver's own "
             "version; then systemctl status nvidia-fabricmanager says what it found";
    case NvlinkMode::partition:
      return "where the fabric manager runs: fmpm -l lists the partitions, fmpm -a ID activates "
             "the "
             "one of these GPUs, before the VM starts; fabric manager and guest need the same "
             "driver version";
    case NvlinkMode::disabled:
      return "run `vfpass guest-setup`, which writes NVreg_NvLinkDisable=1, and restart the guest; "
             "NvLinkDisable in its /proc/driver/nvidia/params then says 1";
  }
  return {};
}

}  // namespace

Finding judgeCudaStatus(int status, const std::string& detail, std::optional<NvlinkMode> nvlink) {
  const std::string expected = "CUDA starts";
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
          "in the guest: nvidia-smi, and dmesg about the driver"};
}

}  // namespace vfpass::guest
