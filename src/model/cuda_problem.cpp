#include "vfpass/cuda_problem.hpp"

#include <algorithm>
#include <array>

namespace vfpass {
namespace {

struct Entry {
  CudaProblem problem;
  std::string_view code;
  std::string_view description;
  std::string_view remedy;
};

// Meanings of the statuses: CUDA driver API reference manual, CUresult. Sorted as the enumeration.
constexpr std::array entries{
    Entry{CudaProblem::libraryMissing, "library-missing",
          "the kernel module is loaded, but libcuda is missing",
          "in the guest: install the driver's CUDA library, in the module's version (Ubuntu: "
          "libnvidia-compute-VERSION, Debian: libcuda1, RHEL: nvidia-driver-cuda-libs), then run "
          "ldconfig"},
    Entry{CudaProblem::driverMissing, "driver-missing", "no driver is installed",
          "in the guest: install NVIDIA's GPU driver"},
    Entry{CudaProblem::moduleNotLoaded, "module-not-loaded",
          "libcuda is installed, but the kernel module nvidia is not loaded",
          "in the guest: modprobe nvidia; if that fails, build the module for the running kernel "
          "(dkms autoinstall), and look in dmesg for a missing signature (Secure Boot)"},
    Entry{CudaProblem::notBound, "not-bound", "the driver nvidia is not bound to any GPU",
          "in the guest: see with lspci -nnk which driver has the GPU, blacklist nouveau, then "
          "restart the guest; if none has it, look in dmesg for NVRM's reason"},
    Entry{CudaProblem::noGpu, "no-gpu", "the guest has no NVIDIA GPU",
          "list it under gpus: in the mapping, then run vfpass attach"},
    Entry{CudaProblem::noDevice, "no-device", "the driver has a GPU, but CUDA finds none",
          "in the guest: unset CUDA_VISIBLE_DEVICES, run nvidia-smi, and look in dmesg for NVRM's "
          "reason (RmInitAdapter failed); then reset the GPU: shut the VM off and start it"},
    Entry{CudaProblem::migWithoutInstance, "mig-without-instance",
          "MIG is enabled on the GPU, but it has no instance",
          "in the guest: create an instance (nvidia-smi mig -cgi PROFILE -C), or disable MIG "
          "(nvidia-smi -mig 0) and restart the guest"},
    Entry{CudaProblem::invalidDevice, "invalid-device", "CUDA refuses the device",
          "in the guest: check CUDA_VISIBLE_DEVICES and the GPU's MIG instances (nvidia-smi -L), "
          "then look in dmesg for NVRM's reason"},
    Entry{CudaProblem::deviceUnavailable, "device-unavailable",
          "the GPU is busy in exclusive mode, or its compute mode is prohibited",
          "in the guest: nvidia-smi -q -d COMPUTE shows the mode; stop the program that uses the "
          "GPU, or run nvidia-smi -c DEFAULT"},
    Entry{
        CudaProblem::onRootBus, "on-root-bus",
        "CUDA does not initialize, and a GPU is on the guest's root bus",
        "put the GPU behind a PCI Express port: shut the VM off, set topology: mirror in the "
        "mapping "
        "(a q35 machine), then run vfpass attach; if it stays, look in the guest's dmesg for NVRM"},
    Entry{CudaProblem::notInitialized, "not-initialized", "CUDA does not initialize",
          "in the guest: run nvidia-smi, and look in dmesg for messages of NVRM; then shut the VM "
          "off and start it"},
    Entry{CudaProblem::stubLibrary, "stub-library",
          "the loader finds the CUDA toolkit's stub instead of the driver's library",
          "in the guest: remove the toolkit's stubs directory from LD_LIBRARY_PATH and "
          "/etc/ld.so.conf.d, then run ldconfig"},
    Entry{CudaProblem::driverTooOld, "driver-too-old",
          "the kernel module is too old for this CUDA library",
          "in the guest: install a newer GPU driver, module and libraries together"},
    Entry{CudaProblem::compatLibrary, "compat-library",
          "CUDA's compatibility library does not support this GPU",
          "in the guest: remove the cuda-compat directory from LD_LIBRARY_PATH and "
          "/etc/ld.so.conf.d, run ldconfig, and install a newer GPU driver instead"},
    Entry{CudaProblem::notLicensed, "not-licensed", "the vGPU has no licence",
          "in the guest: see systemctl status nvidia-gridd"},
    Entry{CudaProblem::osCallFailed, "os-call-failed", "a system call of the driver failed",
          "in the guest: check that /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0 exist "
          "(nvidia-modprobe -c 0 -u) and can be opened, then look in dmesg for messages of NVRM"},
    Entry{CudaProblem::fabricNotReady, "fabric-not-ready",
          "the GPU is on a board with NVSwitches, and its NVLink fabric is not set up",
          "set the fabric up with nvidia-fabricmanager, or disable NVLink "
          "(NVreg_NvLinkDisable=1)"},
    Entry{CudaProblem::driverMismatch, "driver-mismatch",
          "libcuda and the loaded kernel module differ in version",
          "in the guest: restart it, so that the installed module is loaded; if they still differ "
          "(/proc/driver/nvidia/version), reinstall module and libraries in one version"},
    Entry{CudaProblem::uvmMissing, "uvm-missing",
          "the kernel module nvidia_uvm is not loaded, or /dev/nvidia-uvm is missing",
          "in the guest: modprobe nvidia_uvm && nvidia-modprobe -u -c 0"},
    Entry{CudaProblem::unknown, "unknown", "the driver reports an unknown error",
          "in the guest: look in dmesg for messages of NVRM (Xid), reload the module (modprobe -r "
          "nvidia_uvm && modprobe nvidia_uvm), or restart the guest"},
    Entry{CudaProblem::other, "other", "CUDA failed",
          "in the guest: run nvidia-smi, and look for the driver's messages in dmesg"}};

const Entry& entryOf(CudaProblem problem) {
  return *std::ranges::find(entries, problem, &Entry::problem);
}

}  // namespace

std::string_view toString(CudaProblem problem) { return entryOf(problem).code; }

std::optional<CudaProblem> parseCudaProblem(std::string_view code) {
  const auto* const found = std::ranges::find(entries, code, &Entry::code);
  return found == entries.end() ? std::nullopt : std::optional(found->problem);
}

CudaProblem cudaProblemOf(int status) {
  // The numbers of CUresult.
  switch (status) {
    case 3:
      return CudaProblem::notInitialized;
    case 34:
      return CudaProblem::stubLibrary;
    case 35:
    case 36:
      return CudaProblem::driverTooOld;
    case 46:
      return CudaProblem::deviceUnavailable;
    case 100:
      return CudaProblem::noDevice;
    case 101:
      return CudaProblem::invalidDevice;
    case 102:
      return CudaProblem::notLicensed;
    case 304:
      return CudaProblem::osCallFailed;
    case 802:
      return CudaProblem::fabricNotReady;
    case 803:
      return CudaProblem::driverMismatch;
    case 804:
      return CudaProblem::compatLibrary;
    case 999:
      return CudaProblem::unknown;
    default:
      return CudaProblem::other;
  }
}

std::string describe(CudaProblem problem) { return std::string(entryOf(problem).description); }

std::string remedyFor(CudaProblem problem) { return std::string(entryOf(problem).remedy); }

}  // namespace vfpass
