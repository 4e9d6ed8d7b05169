#include "address_needs.hpp"

#include <algorithm>
#include <bit>

namespace vfpass::settings {
namespace {

constexpr std::uint64_t fourGibibytes = 4 * gibibyte;
constexpr std::uint64_t lowRam = 2 * gibibyte;  // of a q35 machine, below 4 GiB
constexpr std::uint64_t maximumRam = 1ULL << 52U;
constexpr std::uint64_t maximumWindow = 1ULL << 56U;

// AMD's IOMMU reserves 12 GiB below 1 TiB (HyperTransport); since 7.1 QEMU moves RAM above 1 TiB
// when the hole would overlap them.
constexpr std::uint64_t amdReserved = 0xFD00000000;

std::uint64_t alignUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::uint64_t wideBytes(const std::vector<MemoryBar>& bars) {
  std::uint64_t sum = 0;
  for (const MemoryBar& bar : bars) {
    sum += bar.wide ? bar.bytes : 0;
  }
  return sum;
}

bool isAmd(const Input& input) { return input.topology.processors.vendor == "AuthenticAMD"; }

}  // namespace

AddressNeeds addressNeeds(const Input& input) {
  AddressNeeds needs;
  for (const Device& device : input.devices) {
    const std::uint64_t bars = std::min(wideBytes(barsOf(input, device)), maximumWindow / 1024);
    needs.bars += bars;
    // The port above a device has one window for all its BARs, aligned to the largest: a GPU with
    // 128 GiB and 32 MiB takes 256 GiB of a tree with others like it.
    needs.window += bars == 0 ? 0 : std::bit_ceil(bars);
  }
  needs.window = needs.window == 0 ? 0 : std::bit_ceil(needs.window);
  const std::uint64_t ram = std::min(input.domain.bytes, maximumRam);
  const std::uint64_t above = ram > lowRam ? ram - lowRam : 0;
  const std::uint64_t alignment = std::max(needs.window, gibibyte);
  needs.end = alignUp(fourGibibytes + above, alignment) + needs.window;
  if (isAmd(input) && needs.end >= amdReserved) {
    needs.end = alignUp(tebibyte + above, alignment) + needs.window;
  }
  needs.bits = static_cast<unsigned>(std::bit_width(needs.end - 1));
  return needs;
}

std::uint64_t firmwareWindow(const Input& input, unsigned bits) {
  // edk2 (PlatformInitLib) trusts a value of 40 bits only on AMD, because 40 is QEMU's default.
  const unsigned trusted = isAmd(input) ? defaultBits : defaultBits + 1;
  return bits >= trusted && bits < 64 ? 1ULL << (bits - 3) : defaultWindow;
}

}  // namespace vfpass::settings
