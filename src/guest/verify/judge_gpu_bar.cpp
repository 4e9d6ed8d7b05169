#include "judge_guest.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
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

}  // namespace vfpass::verify
