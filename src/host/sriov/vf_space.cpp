#include "vfpass/host/vf_space.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::uint16_t sriovCapability = 0x10;
constexpr std::size_t barsInCapability = 0x24;
constexpr std::size_t configBytes = 4096;

std::uint32_t configLong(std::string_view config, std::size_t at) {
  return configWord(config, at).value_or(0) |
         static_cast<std::uint32_t>(configWord(config, at + 2).value_or(0)) << 16U;
}

// The VF BARs that exist. If the kernel could not place one, its line in `resource` is like that of
// a BAR that does not exist (reset_resource), but the bits of its type are hard-wired.
std::array<bool, pciBars> barsIn(std::string_view config) {
  constexpr std::uint32_t typeMask = 0x6;
  constexpr std::uint32_t sixtyFourBit = 0x4;
  std::array<bool, pciBars> found{};
  const auto capability = findExtendedCapability(config, sriovCapability);
  for (std::size_t bar = 0; capability && bar < pciBars; ++bar) {
    const auto value = configLong(config, *capability + barsInCapability + bar * 4);
    found[bar] = value != 0;
    bar += (value & typeMask) == sixtyFourBit ? 1 : 0;  // the next one has the upper half
  }
  return found;
}

void readBars(const Folder& folder, VfSpace& space) {
  const auto bars = barsIn(folder.readBytes("config", 0, configBytes));
  const auto resources = readPciResources(folder.readText("resource").value_or(""));
  for (std::size_t bar = 0; bar < pciBars && firstVfBar + bar < resources.size(); ++bar) {
    const PciResource& resource = resources[firstVfBar + bar];
    if (resource.start != 0 && (resource.flags & unsetResource) == 0) {
      ++space.assignedBars;
    } else if (resource.flags != 0 || bars[bar]) {
      ++space.unassignedBars;
    }
  }
}

// The highest bus number below the bridge that is the folder above the PF's.
std::optional<unsigned> highestBus(const Root& root, const std::string& path) {
  constexpr std::size_t headerType = 0x0e;
  constexpr std::size_t numbers = 0x1a;  // subordinate bus number
  constexpr unsigned bridge = 1;
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) {
    return std::nullopt;
  }
  const std::string above = path.substr(0, slash);
  if (!parsePciAddress(above.substr(above.rfind('/') + 1))) {
    return std::nullopt;
  }
  const Folder folder(root, "sys/devices/" + above);
  const std::string config = folder ? folder.readBytes("config", 0, 64) : "";
  const auto type = configWord(config, headerType);
  const auto bus = configWord(config, numbers);
  return type && bus && (*type & 0x7fU) == bridge ? std::optional(*bus & 0xffU) : std::nullopt;
}

// The requester IDs of the VFs are those of the PF plus an offset plus a stride for each (SR-IOV
// specification, 3.3.9 and 3.3.10).
std::optional<unsigned> vfsWithin(unsigned bus, const Folder& folder, const PciAddress& pf) {
  const auto offset = folder.readNumber("sriov_offset");
  const auto stride = folder.readNumber("sriov_stride");
  constexpr std::uint64_t limit = 0xffff;
  if (!offset || !stride || *offset == 0 || *offset > limit || *stride > limit) {
    return std::nullopt;
  }
  const std::uint64_t first = (pf.bus * 256ULL + pf.slot * 8ULL + pf.function) + *offset;
  const std::uint64_t last = bus * 256ULL + 0xff;
  if (first > last) {
    return 0;
  }
  return *stride == 0 ? std::numeric_limits<unsigned>::max()
                      : static_cast<unsigned>((last - first) / *stride + 1);
}

// Whether `pci=` has this option (Documentation/admin-guide/kernel-parameters.txt).
bool asksPci(const std::vector<std::string>& arguments, std::string_view option) {
  constexpr std::string_view name = "pci=";
  return std::ranges::any_of(arguments, [&](std::string_view argument) {
    if (!argument.starts_with(name)) {
      return false;
    }
    argument.remove_prefix(name.size() - 1);  // each option follows a separator
    for (auto at = argument.find(option); at != std::string_view::npos;
         at = argument.find(option, at + 1)) {
      const auto end = at + option.size();
      const bool whole = end == argument.size() || argument[end] == ',' ||
                         argument.substr(end) == "=on" || argument.substr(end).starts_with("=on,");
      if ((argument[at - 1] == ',' || argument[at - 1] == '=') && whole) {
        return true;
      }
    }
    return false;
  });
}

}  // namespace

VfSpace readVfSpace(const Root& root, const Device& pf) {
  VfSpace space;
  const Folder folder(root, "sys/devices/" + pf.path);
  if (!folder) {
    return space;
  }
  readBars(folder, space);
  if (const auto bus = highestBus(root, pf.path); bus && *bus >= pf.address.bus) {
    space.numberedVfs = vfsWithin(*bus, folder, pf.address);
  }
  return space;
}

std::string missingVfSpace(const VfSpace& space, unsigned count) {
  std::vector<std::string> missing;
  if (space.unassignedBars > 0) {
    missing.push_back(std::to_string(space.unassignedBars) + " of " +
                      std::to_string(space.unassignedBars + space.assignedBars) +
                      " VF BARs without an address");
  }
  if (space.numberedVfs.value_or(count) < count) {
    missing.push_back("bus numbers for " + std::to_string(*space.numberedVfs) + " of " +
                      std::to_string(count) + " VFs");
  }
  return join(missing, ", ");
}

std::string vfSpaceRemedy(const VfSpace& space, const std::vector<std::string>& arguments) {
  const std::string fewer =
      "lower the maximum number of VFs in the NIC's firmware: the kernel needs addresses for all "
      "of "
      "them";
  if (space.unassignedBars > 0) {
    return "enable SR-IOV and Above 4G Decoding in the system's firmware (BIOS); if they are "
           "enabled, " +
           (asksPci(arguments, "realloc")
                ? fewer
                : "boot with the kernel argument pci=realloc, or " + fewer);
  }
  return std::string(
             "enable SR-IOV and ARI in the system's firmware (BIOS), or use a slot below a "
             "port with more bus numbers") +
         (asksPci(arguments, "assign-busses")
              ? ""
              : "; on x86 the kernel argument pci=assign-busses lets the kernel number the buses");
}

}  // namespace vfpass::host
