#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "choose_gpus.hpp"
#include "judge_guest.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// The window is what docs/domain-settings.md computes. In a running guest the kernel does not try
// again.
constexpr const char* windowRemedy =
    "the guest's 64-bit window is too small for the GPUs: look at guest-address-bits, "
    "firmware-window and pci-hole in vfpass plan, set domain-settings: apply in the mapping (or "
    "make these settings yourself), shut the VM off, run vfpass attach and start it";
constexpr const char* smallRemedy =
    "enable Resizable BAR and Above 4G Decoding in the host's firmware if the GPU offers a larger "
    "BAR (vfpass doctor, check gpu-bar); otherwise programs have to register less GPU memory at "
    "one time";

// BAR1 has the number 2 where BAR0 is 64 bits wide, as since Hopper.
const GuestBar* memoryBar(const GuestGpu& gpu) {
  const auto found = std::ranges::find_if(
      gpu.bars, [](const GuestBar& bar) { return bar.number == 1 || bar.number == 2; });
  return found == gpu.bars.end() ? nullptr : &*found;
}

// NVIDIA, GPUDirect RDMA, "PCI BAR sizes": registered memory has to fit into BAR1. GH200 and GB200
// show their memory in a later, larger BAR (drivers/vfio/pci/nvgrace-gpu/main.c).
bool isSmall(const GuestGpu& gpu, const GuestBar& bar) {
  const bool otherIsLarger =
      std::ranges::any_of(gpu.bars, [&](const GuestBar& each) { return each.bytes > bar.bytes; });
  return gpu.memoryBytes && bar.bytes < *gpu.memoryBytes && !otherIsLarger;
}

std::string sizeOf(std::uint64_t bytes) {
  constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;
  return bytes >= gibibyte ? std::to_string(bytes / gibibyte) + " GiB" : sizeText(bytes);
}

struct Bars {
  std::vector<std::string> unassigned;
  std::vector<std::string> small;
  std::vector<std::string> sound;
  std::vector<std::string> missing;  ///< entries of leased GPUs
};

void sortInto(Bars& bars, const GuestGpu& gpu) {
  const GuestBar* bar = memoryBar(gpu);
  if (bar == nullptr) {
    return;
  }
  const std::string size = bar->bytes == 0 ? "" : " of " + sizeOf(bar->bytes);
  if (!bar->assigned || bar->bytes == 0) {
    bars.unassigned.push_back(gpu.pci + ": BAR1" + size + " has no address");
  } else if (isSmall(gpu, *bar)) {
    bars.small.push_back(gpu.pci + ": BAR1" + size + " for " + sizeOf(*gpu.memoryBytes) +
                         " of memory");
  } else {
    bars.sound.push_back(gpu.pci + size);
  }
}

Bars barsOf(const GuestView& view, const std::vector<LeasedGpu>& leased) {
  Bars bars;
  for (const LeasedGpu& each : leased) {
    const GuestGpu* gpu = gpuAtPlaceOf(view, each);
    gpu == nullptr ? bars.missing.push_back(each.entry) : sortInto(bars, *gpu);
  }
  return bars;
}

std::string whyNotJudged(const Bars& bars, bool anyLeased) {
  return !anyLeased             ? "not judged: no GPU of the guest is known as leased by vfpass"
         : bars.missing.empty() ? "not judged: no BAR1, as in integrated GPUs"
                                : "not found in the guest: " + join(bars.missing, ", ");
}

}  // namespace

std::optional<Finding> judgeGpuBars(const GuestView& view, const std::vector<LeasedGpu>& leased) {
  if (std::ranges::all_of(view.gpus, [](const GuestGpu& gpu) { return gpu.bars.empty(); })) {
    return std::nullopt;
  }
  const Bars bars = barsOf(view, leased);
  Finding finding{"gpu-bar",
                  "",
                  Outcome::passed,
                  "the memory of each leased GPU is behind a BAR1 with an address",
                  {},
                  {}};
  if (!bars.unassigned.empty()) {
    finding.outcome = Outcome::failed;
    finding.seen = join(bars.unassigned, "; ");
    finding.remedy = windowRemedy;
  } else if (!bars.small.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen = join(bars.small, "; ") + ": RDMA can register no more at one time";
    finding.remedy = smallRemedy;
  } else if (bars.sound.empty() || !bars.missing.empty()) {
    finding.outcome = Outcome::waived;
    finding.seen = whyNotJudged(bars, !leased.empty());
  } else {
    finding.seen = join(bars.sound, ", ");
  }
  return finding;
}

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
