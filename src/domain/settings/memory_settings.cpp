#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <set>

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

constexpr std::uint64_t smallestPage = 2 * mebibyte;

// Of the host's kernel, largest first: on Arm with pages of 64 KiB these are 16 GiB, 512 MiB and
// 2 MiB (arch/arm64/mm/hugetlbpage.c). Where the tree does not tell, those of x86.
std::set<std::uint64_t, std::greater<>> pageSizes(const Input& input) {
  std::set<std::uint64_t, std::greater<>> sizes;
  for (const auto& [number, memory] : input.capacity.nodes) {
    for (const auto& [size, pool] : memory.pages) {
      if (size >= smallestPage) {
        sizes.insert(size);
      }
    }
  }
  return sizes.empty() ? decltype(sizes){gibibyte, smallestPage} : sizes;
}

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

// Those to boot the host with: of at most 1 GiB, because a guest is rarely a multiple of more.
std::uint64_t pagesToReserve(const Input& input, const Placement& placement) {
  const auto sizes = pageSizes(input);
  const auto fits = [&](std::uint64_t size) {
    return size <= gibibyte && divides(input, placement, size);
  };
  const auto size = std::ranges::find_if(sizes, fits);
  return size == sizes.end() ? smallestPage : *size;
}

// As `hugepagesz=` has it.
std::string sizeArgument(std::uint64_t size) {
  return size % gibibyte == 0 ? std::to_string(size / gibibyte) + "G"
                              : std::to_string(size / mebibyte) + "M";
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
  for (const std::uint64_t size : pageSizes(input)) {
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
  const std::uint64_t size = pagesToReserve(input, placement);
  settings.push_back(
      {"hugepages", "guest memory in pages of " + amount(size) + " (<memoryBacking>)",
       reason +
           "; the host has not reserved enough: boot it with hugepagesz=" + sizeArgument(size) +
           " hugepages=" + std::to_string((input.domain.bytes + size - 1) / size) + " or more",
       SettingStanding::manual});
}

namespace {

// The default 64-bit MMIO window of QEMU and firmware (q35-pcihost.pci-hole64-size; OVMF's
// PcdPciMmio64Size).
constexpr std::uint64_t defaultWindow = 32 * gibibyte;

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
  for (const GuestDevice& device : input.devices) {
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

namespace {

// The window that OVMF chooses in a guest with that many address bits.
std::uint64_t firmwareWindow(const Input& input, unsigned bits) {
  // edk2 (PlatformInitLib) trusts a value of 40 bits only on AMD, because 40 is QEMU's default.
  const unsigned trusted = isAmd(input) ? defaultBits : defaultBits + 1;
  return bits >= trusted && bits < 64 ? 1ULL << (bits - 3) : defaultWindow;
}

std::string bitsText(unsigned bits) { return std::to_string(bits) + " physical address bits"; }

// In whole GiB: small BARs beside large ones would otherwise turn it into an unreadable number of
// MiB.
std::string barsText(const AddressNeeds& needs) {
  return amount((needs.bars + gibibyte - 1) / gibibyte * gibibyte);
}

std::string needsText(const Input& input, const AddressNeeds& needs) {
  return "RAM of " + amount(input.domain.bytes) + " and a window of " + amount(needs.window) +
         " for BARs of " + barsText(needs) + " need " + bitsText(needs.bits);
}

// The current address bits of the guest; 0: unknown.
unsigned presentBits(const Input& input) {
  if (input.domain.addressBitsMode == "passthrough") {
    return input.capacity.addressBits;
  }
  return input.domain.addressBitsMode == "emulate" ? input.domain.addressBits.value_or(0)
                                                   : defaultBits;
}

// Why vfpass cannot pass the host's address bits through; empty if it can.
std::string obstacleToBits(const Input& input) {
  if (isOlder(input.versions.libvirt, {8, 7})) {
    return "libvirt " + versionText(input.versions.libvirt) +
           " does not support <maxphysaddr>, which requires 8.7";
  }
  if (input.domain.emulated) {
    return "without KVM libvirt accepts only <maxphysaddr mode='emulate' bits='...'/>";
  }
  return input.domain.cpuElement ? "" : "the domain has no <cpu> element";
}

bool hostHasBits(const Input& input, const AddressNeeds& needs) {
  return input.capacity.addressBits == 0 || needs.bits <= input.capacity.addressBits;
}

// Returns the address bits of the guest with the setting; 0: unknown.
unsigned proposeBits(const Input& input, const AddressNeeds& needs,
                     std::vector<DomainSetting>& settings) {
  const unsigned present = presentBits(input);
  const bool tooFew = present != 0 && needs.bits > present;
  const bool narrow =
      input.domain.uefi && present != 0 && firmwareWindow(input, present) < needs.window;
  DomainSetting setting{"guest-address-bits", "<maxphysaddr mode='passthrough'/> in <cpu>",
                        needsText(input, needs) + "; the guest has " + std::to_string(present)};
  if (!tooFew && narrow) {
    setting.reason +=
        ", and OVMF then limits its window to " + amount(firmwareWindow(input, present));
  }
  // Who can set the bits: nobody on this host, the administrator, or vfpass.
  if (!hostHasBits(input, needs)) {
    setting.what = "less RAM or fewer devices";
    setting.reason = needsText(input, needs) + "; the host's CPUs have " +
                     std::to_string(input.capacity.addressBits);
    setting.standing = SettingStanding::manual;
  } else if (!tooFew && !narrow) {
    return present;
  } else if (input.domain.addressBitsMode == "passthrough") {
    return present;  // only X-PciMmio64Mb is missing
  } else if (!input.domain.addressBitsMode.empty()) {
    setting.standing = SettingStanding::administrators;
  } else if (const std::string obstacle = obstacleToBits(input); !obstacle.empty()) {
    setting.standing = SettingStanding::manual;
    setting.reason += "; " + obstacle;
  } else {
    setting.edit = DomainEdit{setting.name, EditPlace::cpu, {"<maxphysaddr mode='passthrough'/>"}};
    settings.push_back(setting);
    return input.capacity.addressBits;
  }
  settings.push_back(setting);
  return present;
}

void proposeFirmwareWindow(const Input& input, const AddressNeeds& needs, unsigned bits,
                           std::vector<DomainSetting>& settings) {
  const std::uint64_t mebibytes = needs.window / mebibyte;
  DomainSetting setting{"firmware-window", "OVMF's X-PciMmio64Mb=" + std::to_string(mebibytes),
                        "BARs of " + barsText(needs) + " need a window of " + amount(needs.window) +
                            "; with " + bitsText(bits) + " OVMF creates one of " +
                            amount(firmwareWindow(input, bits))};
  if (input.domain.mmioMebibytes) {
    if (*input.domain.mmioMebibytes < mebibytes) {
      setting.standing = SettingStanding::administrators;
      setting.reason = "BARs of " + barsText(needs) + " need a window of " + amount(needs.window) +
                       "; the domain sets " + std::to_string(*input.domain.mmioMebibytes) + " MiB";
      settings.push_back(setting);
    }
  } else if (bits != 0 && needs.bits <= bits && firmwareWindow(input, bits) < needs.window) {
    // libvirt refuses opt/ovmf/ below <sysinfo type='fwcfg'> as a reserved name.
    setting.edit = DomainEdit{
        setting.name,
        EditPlace::qemuCommandline,
        {"<qemu:arg value='-fw_cfg'/>", "<qemu:arg value='name=opt/ovmf/X-PciMmio64Mb,string=" +
                                            std::to_string(mebibytes) + "'/>"}};
    settings.push_back(setting);
  }
}

void proposeHole(const Input& input, const AddressNeeds& needs, unsigned bits,
                 std::vector<DomainSetting>& settings) {
  DomainSetting setting{"pci-hole", "<pcihole64> of " + amount(needs.window) + " on pcie-root",
                        "QEMU provides " + amount(input.domain.pciHole.value_or(defaultWindow)) +
                            " of 64-bit MMIO space to the guest, but BARs of " + barsText(needs) +
                            " need " + amount(needs.window)};
  if (input.domain.pciHole) {
    if (*input.domain.pciHole < needs.window) {
      setting.standing = SettingStanding::administrators;
      settings.push_back(setting);
    }
  } else if (input.domain.pcieRoot && (bits == 0 || needs.bits <= bits)) {
    // QEMU exits when RAM and hole exceed the guest's address bits.
    setting.edit =
        DomainEdit{setting.name, EditPlace::pcieRoot, {kibibyteElement("pcihole64", needs.window)}};
    settings.push_back(setting);
  }
}

}  // namespace

void proposeAddressSpace(const Input& input, std::vector<DomainSetting>& settings) {
  const AddressNeeds needs = addressNeeds(input);
  const bool x86 = input.domain.architecture == "x86_64";
  if (!x86 || needs.window <= defaultWindow) {
    return;
  }
  const unsigned bits = proposeBits(input, needs, settings);
  if (input.domain.uefi) {
    proposeFirmwareWindow(input, needs, bits, settings);
  }
  proposeHole(input, needs, bits, settings);
}

namespace {

// Apart from ROM BARs and registers, GPUs that need a window above 4 GiB have BARs of at least this
// size.
constexpr std::uint64_t largeBar = 4 * gibibyte;

// The stall was reported for B200 with 256 GiB BARs; the time is proportional to the size.
constexpr std::uint64_t stallingBar = 64 * gibibyte;

std::uint64_t largestBar(const Input& input) {
  std::uint64_t largest = 0;
  for (const GuestDevice& device : input.devices) {
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
