#include <algorithm>
#include <array>
#include <map>

#include "setting_proposals.hpp"
#include "vfpass/confidential_guest.hpp"
#include "vfpass/version.hpp"

namespace vfpass::settings {
namespace {

// Since this major version libvirt itself counts RAM once for each VFIO device behind a virtual
// IOMMU; earlier releases are only known to count it once.
constexpr unsigned countsDevicesSince = 9;

std::uint64_t mappings(const Input& input) {
  const std::size_t devices = input.devices.size() + input.domain.foreignDevices;
  return input.domain.viommu ? std::clamp<std::uint64_t>(devices, 1, 64) : 1;
}

}  // namespace

void proposeHardLimit(const Input& input, std::vector<DomainSetting>& settings) {
  const std::uint64_t times = mappings(input);
  const std::uint64_t needed = input.domain.bytes * times + gibibyte;
  DomainSetting setting{"hard-limit", "<hard_limit> of " + amount(needed),
                        "VFIO pins all " + amount(input.domain.bytes) + " of guest memory" +
                            (times > 1 ? ", once for each of " + std::to_string(times) +
                                             " devices behind the virtual IOMMU"
                                       : "") +
                            ", and QEMU needs about 1 GiB in addition"};
  if (input.domain.hardLimit && *input.domain.hardLimit < needed) {
    setting.standing = SettingStanding::administrators;
    setting.reason +=
        "; the domain has " + amount(*input.domain.hardLimit) + ", with which it fails to start";
    settings.push_back(setting);
  } else if (!input.domain.hardLimit && times > 1 &&
             isOlder(input.versions.libvirt, {countsDevicesSince, 0})) {
    setting.reason += "; libvirt " + versionText(input.versions.libvirt) + " counts it only once";
    setting.edit =
        DomainEdit{setting.name, EditPlace::memtune, {kibibyteElement("hard_limit", needed)}};
    settings.push_back(setting);
  }
}

namespace {

constexpr std::array pageSizes{gibibyte, 2 * mebibyte};

// Guest memory by host node; node -1: any node.
std::map<int, std::uint64_t> wantedOf(const Input& input, const Placement& placement) {
  return placement.cells.empty() ? std::map<int, std::uint64_t>{{-1, input.domain.bytes}}
                                 : bytesByNode(placement);
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
         std::ranges::all_of(placement.cells,
                             [size](const PlacedCell& cell) { return cell.bytes % size == 0; });
}

bool hasEnoughPages(const Input& input, const Placement& placement, std::uint64_t size) {
  const auto wanted = wantedOf(input, placement);
  return divides(input, placement, size) && std::ranges::all_of(wanted, [&](const auto& each) {
           return pagesOn(input, each.first, size) >= each.second / size;
         });
}

}  // namespace

void proposeHugePages(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings) {
  // Huge pages would back only what the guest shares: guest_memfd has none (QEMU,
  // docs/system/guest-memfd.rst), and neither has protected virtualization (s390x/protvirt.rst).
  const std::string& security = input.domain.launchSecurity;
  const bool useless = hasGuestMemfd(security) || security == "s390-pv";
  if (!hasGpus(input) || input.domain.hugepages || input.domain.bytes == 0 || useless) {
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
