#include "judge_guest.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// DMA-BUF: NVIDIA GPU Operator, "GPUDirect RDMA and GPUDirect Storage", platform support: open
// modules of R515 or later, CUDA 11.7, Linux 5.12, which added ib_umem_dmabuf_get().
constexpr std::uint64_t firstDmaBufDriver = 515;
constexpr unsigned firstDmaBufCuda = 11070;
constexpr std::tuple<std::uint64_t, std::uint64_t> firstDmaBufKernel{5, 12};

// The proprietary module writes "NVIDIA UNIX x86_64 Kernel Module", the open one "NVIDIA UNIX Open
// Kernel Module for x86_64".
bool isOpen(const GuestView& view) {
  return view.nvidiaDriver.find("Open Kernel Module") != std::string::npos;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t most = 64;
  return printable(text.substr(0, most));
}

// `550` of `550.54.15`; 0: unknown.
std::uint64_t firstNumber(const std::string& text) {
  return parseNumber(text.substr(0, text.find_first_not_of("0123456789"))).value_or(0);
}

// `6.8` of `6.8.0-51-generic`.
std::tuple<std::uint64_t, std::uint64_t> kernelVersion(const std::string& release) {
  const auto dot = release.find('.');
  return {firstNumber(release),
          dot == std::string::npos ? 0 : firstNumber(release.substr(dot + 1))};
}

std::string cudaText(const GuestView& view) {
  return view.cudaVersion ? std::to_string(*view.cudaVersion / 1000) + "." +
                                std::to_string(*view.cudaVersion % 1000 / 10)
                          : "unknown";
}

// Why the driver does not export DMA-BUF.
std::string whyNoExport(const GuestView& view) {
  if (!isOpen(view)) {
    return "the proprietary modules do not export it";
  }
  const std::uint64_t driver = firstNumber(view.nvidiaVersion);
  if (driver != 0 && driver < firstDmaBufDriver) {
    return "it needs driver 515 or later";
  }
  if (view.cudaVersion && *view.cudaVersion < firstDmaBufCuda) {
    return "it needs CUDA 11.7 or later";
  }
  const auto kernel = kernelVersion(view.kernel);
  return kernel != std::tuple<std::uint64_t, std::uint64_t>{} && kernel < firstDmaBufKernel
             ? "it needs Linux 5.12 or later"
             : "CUDA does not report support for any GPU";
}

std::string peerMemoryProblem(const GuestView& view) {
  if (view.peerMemory) {
    return {};
  }
  // nv_mem_client_init() in nvidia-peermem.c; README of the driver, "GPUDirect RDMA Peer Memory
  // Client".
  if (view.peerMemoryInterface == false) {
    return "the kernel lacks ib_register_peer_memory_client, so it would not load (Invalid "
           "argument)";
  }
  return view.peerMemoryLoadable ? "not loaded" : "not installed for this kernel";
}

std::string worksOr(const std::string& problem) {
  return problem.empty() ? "works" : "no: " + problem;
}

}  // namespace

std::string dmaBufRefusal(const GuestView& view) {
  // One device that registers it is enough: a guest may have an older NIC, too.
  const auto isHardware = [](const GuestRdmaDevice& each) { return each.parent.empty(); };
  const bool works = std::ranges::any_of(view.rdmaDevices, [&](const GuestRdmaDevice& each) {
    return isHardware(each) && each.dmaBuf != false;
  });
  const auto refusing = std::ranges::find_if(view.rdmaDevices, [&](const GuestRdmaDevice& each) {
    return isHardware(each) && each.dmaBuf == false;
  });
  return works || refusing == view.rdmaDevices.end()
             ? ""
             : refusing->name + " does not register it: " + shortened(refusing->whyNoDmaBuf);
}

std::string gpuModulesRemedy(const GuestView& view, const std::string& guestSetup) {
  const std::string open =
      isOpen(view) && firstNumber(view.nvidiaVersion) >= firstDmaBufDriver
          ? "in the guest: install a kernel of 5.12 or later and CUDA 11.7 or later, for DMA-BUF"
          : "in the guest: install NVIDIA's open kernel modules, 515 or later, which support "
            "DMA-BUF";
  if (view.peerMemoryInterface == false) {
    return open +
           "; or install MLNX_OFED or DOCA-OFED, then reinstall the GPU driver, so that "
           "nvidia_peermem is built with it";
  }
  return view.peerMemoryLoadable
             ? "in the guest: modprobe nvidia_peermem (" + guestSetup + " makes it permanent)"
             : open + "; or reinstall the driver after OFED, so that it builds nvidia_peermem";
}

std::optional<Finding> judgeGpuModules(const GuestView& view, const std::string& guestSetup) {
  if (view.nvidiaDriver.empty()) {
    return std::nullopt;
  }
  const bool exported = std::ranges::any_of(view.gpus, &GuestGpu::dmaBuf);
  const std::string dmaBuf = exported ? dmaBufRefusal(view) : whyNoExport(view);
  const std::string peerMemory = peerMemoryProblem(view);
  const bool works = dmaBuf.empty() || peerMemory.empty();
  return Finding{
      "gpu-modules",
      "",
      works ? Outcome::passed : Outcome::warning,
      "DMA-BUF or nvidia_peermem works with these modules",
      std::string(isOpen(view) ? "open" : "proprietary") + " modules " +
          shortened(view.nvidiaVersion.empty() ? "of unknown version" : view.nvidiaVersion) +
          ", CUDA " + cudaText(view) + ", Linux " + shortened(view.kernel) +
          "; DMA-BUF: " + worksOr(dmaBuf) + "; nvidia_peermem: " + worksOr(peerMemory),
      works ? "" : gpuModulesRemedy(view, guestSetup)};
}

}  // namespace vfpass::verify
