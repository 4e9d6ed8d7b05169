#include <algorithm>

#include "parts.hpp"
#include "vfpass/base/version_text.hpp"

namespace vfpass::settings {
namespace {

// Apart from ROM BARs and registers, GPUs that need a window above 4 GiB have BARs of at least this
// size.
constexpr std::uint64_t largeBar = 4 * gibibyte;

// The stall was reported for B200 with 256 GiB BARs; the time is proportional to the size.
constexpr std::uint64_t stallingBar = 64 * gibibyte;

std::uint64_t largestBar(const Input& input) {
  std::uint64_t largest = 0;
  for (const Device& device : input.devices) {
    for (const MemoryBar& bar : barsOf(input, device)) {
      largest = isGpu(input, device) ? std::max(largest, bar.bytes) : largest;
    }
  }
  return largest;
}

}  // namespace

void proposeFirmware(const Input& input, std::vector<DomainSetting>& settings) {
  if (input.domain.uefi || input.domain.architecture != "x86_64" || largestBar(input) < largeBar) {
    return;
  }
  settings.push_back(
      {"firmware", "UEFI (<os firmware='efi'>)",
       "the domain uses a BIOS, but NVIDIA's guide for GPU guests calls for UEFI; a guest that was "
       "installed with a BIOS does not boot with UEFI, so vfpass never changes this",
       SettingStanding::manual});
}

void proposeLargeBars(const Input& input, std::vector<DomainSetting>& settings) {
  const std::uint64_t largest = largestBar(input);
  if (largest < stallingBar || !isOlder(input.versions.qemu, {10, 1})) {
    return;
  }
  settings.push_back({"large-bars", "QEMU 10.1 or newer",
                      "QEMU " + versionText(input.versions.qemu) + " maps a BAR of " +
                          amount(largest) +
                          " page by page, which can delay the guest's boot for minutes; "
                          "x-no-mmap=true avoids that, but stops peer-to-peer DMA to the BAR, and "
                          "with it GPUDirect RDMA, so vfpass does not set it",
                      SettingStanding::manual});
}

}  // namespace vfpass::settings
