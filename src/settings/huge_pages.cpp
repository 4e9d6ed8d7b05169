#include <algorithm>
#include <array>
#include <map>

#include "parts.hpp"

namespace vfpass::settings {
namespace {

constexpr std::array pageSizes{gibibyte, 2 * mebibyte};

// Guest memory by host node; node -1: any node.
std::map<int, std::uint64_t> wantedOf(const Input& input, const Placement& placement) {
  if (placement.cells.empty()) {
    return {{-1, input.domain.bytes}};
  }
  std::map<int, std::uint64_t> wanted;
  for (const PlacedCell& cell : placement.cells) {
    wanted[cell.node] += cell.bytes;
  }
  return wanted;
}

// Pages available to this guest: the free ones, or all of them when its memory is already in huge
// pages.
std::uint64_t pagesOn(const Input& input, int node, std::uint64_t size) {
  std::uint64_t pages = 0;
  for (const auto& [number, memory] : input.capacity.nodes) {
    const auto pool = memory.pages.find(size);
    if ((node < 0 || number == node) && pool != memory.pages.end()) {
      pages += input.made.contains("hugepages") ? pool->second.total : pool->second.free;
    }
  }
  return pages;
}

// True when the guest and each of its cells are a whole number of pages.
bool divides(const Input& input, const Placement& placement, std::uint64_t size) {
  return input.domain.bytes % size == 0 &&
         std::all_of(placement.cells.begin(), placement.cells.end(),
                     [size](const PlacedCell& cell) { return cell.bytes % size == 0; });
}

bool hasEnoughPages(const Input& input, const Placement& placement, std::uint64_t size) {
  const auto wanted = wantedOf(input, placement);
  return divides(input, placement, size) &&
         std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
           return pagesOn(input, each.first, size) >= each.second / size;
         });
}

}  // namespace

void proposeHugePages(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings) {
  if (!hasGpus(input) || input.domain.hugepages || input.domain.bytes == 0) {
    return;
  }
  const std::string reason = "VFIO pins and maps all " + amount(input.domain.bytes) +
                             " of guest memory at each start, page by page, and the IOMMU looks "
                             "pages up at each DMA";
  for (const std::uint64_t size : pageSizes) {
    if (hasEnoughPages(input, placement, size)) {
      settings.push_back(
          {"hugepages", "guest memory in pages of " + amount(size) + " (<memoryBacking>)",
           reason + "; the host has reserved enough of them", SettingStanding::proposed,
           DomainEdit{"hugepages",
                      EditPlace::memoryBacking,
                      {"<hugepages><page size='" + std::to_string(size / kibibyte) +
                       "' unit='KiB'/></hugepages>"}}});
      return;
    }
  }
  const std::uint64_t size = divides(input, placement, gibibyte) ? gibibyte : 2 * mebibyte;
  settings.push_back(
      {"hugepages", "guest memory in pages of " + amount(size) + " (<memoryBacking>)",
       reason + "; the host has not reserved enough: boot it with hugepagesz=" +
           (size == gibibyte ? "1G" : "2M") +
           " hugepages=" + std::to_string((input.domain.bytes + size - 1) / size) + " or more",
       SettingStanding::manual});
}

}  // namespace vfpass::settings
