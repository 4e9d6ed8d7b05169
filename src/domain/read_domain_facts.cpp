#include "vfpass/domain/read_domain_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "device_xml.hpp"
#include "document.hpp"
#include "domain_edits.hpp"
#include "our_elements.hpp"
#include "qemu_arguments.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/confidential_guest.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {
namespace {

// libvirt always writes KiB; the other units occur in XML that has not been through libvirt.
struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array units{Unit{"", 1ULL << 10U},      Unit{"KiB", 1ULL << 10U},
                           Unit{"k", 1ULL << 10U},     Unit{"MiB", 1ULL << 20U},
                           Unit{"M", 1ULL << 20U},     Unit{"GiB", 1ULL << 30U},
                           Unit{"G", 1ULL << 30U},     Unit{"TiB", 1ULL << 40U},
                           Unit{"T", 1ULL << 40U},     Unit{"b", 1},
                           Unit{"bytes", 1},           Unit{"KB", 1000},
                           Unit{"MB", 1000ULL * 1000}, Unit{"GB", 1000ULL * 1000 * 1000}};

std::optional<std::uint64_t> inUnit(std::string_view text, std::string_view unit) {
  const auto number = parseNumber(trim(text));
  for (const Unit& each : units) {
    if (number && each.name == unit &&
        *number <= std::numeric_limits<std::uint64_t>::max() / each.bytes) {
      return *number * each.bytes;
    }
  }
  return std::nullopt;
}

// An amount of memory in bytes: the element's text in its unit, KiB by default as in libvirt.
// nullopt for a null node and for invalid text.
std::optional<std::uint64_t> amountIn(pugi::xml_node element) {
  return inUnit(element.child_value(), attributeText(element, "unit"));
}

// The same for an attribute, in the unit of the `unit` attribute.
std::optional<std::uint64_t> amountOf(pugi::xml_node element, const char* attribute) {
  return inUnit(attributeText(element, attribute), attributeText(element, "unit"));
}

constexpr unsigned maxVcpus = 4096;

void addSet(std::string_view text, std::set<unsigned>& numbers) {
  const auto set = parseNodeSet(text).value_or(std::set<unsigned>());
  numbers.insert(set.begin(), set.end());
}

std::size_t hostDeviceCount(const Document& document) {
  const auto devices = document.devices();
  const auto arguments = readQemuArguments(document).devices;
  return static_cast<std::size_t>(
      std::count_if(devices.begin(), devices.end(),
                    [](pugi::xml_node device) { return hostAddressElement(device).has_value(); }) +
      std::ranges::count_if(arguments, &QemuDevice::isVfio));
}

std::vector<PciAddress> hostFunctions(const Document& document) {
  std::vector<PciAddress> functions;
  const auto add = [&](const std::optional<PciAddress>& function) {
    if (function) {
      functions.push_back(*function);
    }
  };
  for (const auto device : document.devices()) {
    const auto address = hostAddressElement(device);
    add(address ? readPciAddress(*address) : std::nullopt);
  }
  for (const QemuDevice& device : readQemuArguments(document).devices) {
    add(device.hostFunction());
  }
  return functions;
}

std::string withFunction(const std::string& what, const std::optional<PciAddress>& function) {
  return function ? what + " " + toString(*function) : what;
}

// The functions of the host that are given to the guest with iommufd by their own element or
// argument, as DomainFacts::iommufdDevices.
std::vector<std::string> iommufdDevices(const Document& document) {
  std::vector<std::string> devices;
  for (const auto device : document.devices()) {
    const auto address = hostAddressElement(device);
    if (address && attributeText(device.child("driver"), "iommufd") == "yes") {
      devices.push_back(
          withFunction("<" + std::string(device.name()) + ">", readPciAddress(*address)));
    }
  }
  for (const QemuDevice& device : readQemuArguments(document).devices) {
    if (device.isVfio() && !device.property("iommufd").empty()) {
      devices.push_back(withFunction(printable(device.driver), device.hostFunction()));
    }
  }
  return devices;
}

std::string launchSecurityOf(const Document& document) {
  return std::string(attributeText(document.domain().child("launchSecurity"), "type"));
}

void readMachine(const Document& document, DomainFacts& facts) {
  const auto domain = document.domain();
  const auto os = domain.child("os");
  facts.name = domain.child_value("name");
  facts.emulated = attributeText(domain, "type") == "qemu";
  facts.architecture = attributeText(os.child("type"), "arch");
  facts.machine = attributeText(os.child("type"), "machine");
  facts.pcieRoot = !containerAt(document, EditPlace::pcieRoot).empty();
  facts.launchSecurity = launchSecurityOf(document);
  if (const auto iommufd = attributeText(domain.child("iommufd"), "enabled"); !iommufd.empty()) {
    facts.iommufd = iommufd == "yes";
  }
  facts.iommufdDevices = iommufdDevices(document);
  // Memory encryption of x86 starts only with OVMF (libvirt's kbase/launch_security_sev, QEMU's
  // docs/system/i386/tdx.rst), which SEV-SNP and TDX load as ROM instead of pflash.
  facts.uefi = attributeText(os, "firmware") == "efi" ||
               attributeText(os.child("loader"), "type") == "pflash" ||
               facts.launchSecurity == "sev" || hasGuestMemfd(facts.launchSecurity);
}

// A GPU with coherent memory brings up its memory in such cells (`<acpi nodeset=>`, QEMU's
// acpi-generic-initiator); they have nothing to place.
bool isEmptyCell(pugi::xml_node cell) {
  return attributeText(cell, "cpus").empty() && amountOf(cell, "memory") == 0U;
}

void readMemoryCells(const Document& document, DomainFacts& facts) {
  for (const auto device : document.devices()) {
    if (const auto nodes = attributeText(device.child("acpi"), "nodeset"); !nodes.empty()) {
      const auto address = hostAddressElement(device);
      const auto function = address ? readPciAddress(*address) : std::nullopt;
      addSet(nodes, facts.memoryCells[function.value_or(PciAddress())]);
    }
    facts.fastSmmus += std::string_view(device.name()) == "iommu" &&
                               attributeText(device, "model") == "smmuv3" &&
                               attributeText(device.child("driver"), "accel") == "on"
                           ? 1
                           : 0;
  }
}

void readMemory(const Document& document, DomainFacts& facts) {
  const auto domain = document.domain();
  facts.bytes = amountIn(domain.child("memory")).value_or(0);
  facts.hardLimit = amountIn(domain.child("memtune").child("hard_limit"));
  facts.hugepages = !domain.child("memoryBacking").child("hugepages").empty();
  facts.viommu = !document.devices().child("iommu").empty();
  facts.foreignDevices = hostDeviceCount(document);
  facts.foreignFunctions = hostFunctions(document);
}

void readCells(const Document& document, DomainFacts& facts) {
  for (const auto cell : document.domain().child("cpu").child("numa").children("cell")) {
    CellFacts read;
    const auto id = smallNumber(attributeText(cell, "id"));
    if (id && isEmptyCell(cell)) {
      facts.emptyCells.insert(*id);
    } else if (id) {
      read.id = *id;
      addSet(attributeText(cell, "cpus"), read.vcpus);
      read.bytes = amountOf(cell, "memory").value_or(0);
      facts.cells.push_back(std::move(read));
    }
  }
}

void readMemoryPlacement(const Document& document, DomainFacts& facts) {
  const auto tune = document.domain().child("numatune");
  const auto memory = tune.child("memory");
  facts.placesMemory = !memory.empty() || !tune.child("memnode").empty();
  facts.automatic = facts.automatic || attributeText(memory, "placement") == "auto";
  addSet(attributeText(memory, "nodeset"), facts.memoryNodes);
  for (const auto node : tune.children("memnode")) {
    const auto id = smallNumber(attributeText(node, "cellid"));
    addSet(attributeText(node, "nodeset"), facts.memoryNodes);
    for (CellFacts& cell : facts.cells) {
      if (id == cell.id) {
        addSet(attributeText(node, "nodeset"), cell.hostNodes);
      }
    }
  }
}

void readVcpus(const Document& document, DomainFacts& facts) {
  const auto vcpu = document.domain().child("vcpu");
  const auto count = parseNumber(trim(vcpu.child_value()));
  facts.vcpus = count && *count <= maxVcpus ? static_cast<unsigned>(*count) : 0;
  const auto online = parseNumber(attributeText(vcpu, "current"));
  facts.onlineVcpus =
      online && *online <= facts.vcpus ? static_cast<unsigned>(*online) : facts.vcpus;
  facts.automatic = attributeText(vcpu, "placement") == "auto";
  // A <vcpupin> replaces the set of <vcpu> for its vCPU.
  std::set<std::uint64_t> pinned;
  for (const auto pin : document.domain().child("cputune").children("vcpupin")) {
    facts.pinsVcpus = true;
    addSet(attributeText(pin, "cpuset"), facts.pinnedCpus);
    pinned.insert(parseNumber(attributeText(pin, "vcpu")).value_or(maxVcpus));
  }
  const bool eachPinned = facts.vcpus > 0 && pinned.size() >= facts.vcpus;
  const std::string_view rest = attributeText(vcpu, "cpuset");
  if (!rest.empty() && !eachPinned) {
    addSet(rest, facts.pinnedCpus);
  }
  facts.pinsVcpus = facts.pinsVcpus || !rest.empty();
  facts.pinsAllVcpus = eachPinned || !rest.empty();
}

void readAddressSpace(const Document& document, DomainFacts& facts) {
  const auto cpu = document.domain().child("cpu");
  const auto bits = cpu.child("maxphysaddr");
  facts.cpuElement = !cpu.empty();
  facts.addressBitsMode = attributeText(bits, "mode");
  facts.addressBits = smallNumber(attributeText(bits, "bits"));
  facts.pciHole = amountIn(containerAt(document, EditPlace::pcieRoot).child("pcihole64"));
  for (const auto argument : document.domain().child("qemu:commandline").children("qemu:arg")) {
    constexpr std::string_view name = "X-PciMmio64Mb,string=";
    const auto value = attributeText(argument, "value");
    if (const auto at = value.find(name); at != std::string_view::npos) {
      facts.mmioMebibytes = parseNumber(value.substr(at + name.size()));
    }
  }
}

void readOverrides(const Document& document, DomainFacts& facts) {
  PropertyOverrides overrides = readQemuArguments(document).overrides;
  for (const auto device : document.domain().child("qemu:override").children("qemu:device")) {
    for (const auto property : device.child("qemu:frontend").children("qemu:property")) {
      overrides.add(attributeText(device, "alias"), attributeText(property, "name"));
    }
  }
  facts.cliqueAliases = std::move(overrides.cliques);
  facts.linkAliases = std::move(overrides.links);
}

}  // namespace

DomainFacts readDomainFacts(std::string_view xml) {
  const std::string bare = removeElements(xml, {});
  const Document document(bare);
  DomainFacts facts;
  readMachine(document, facts);
  readMemory(document, facts);
  readCells(document, facts);
  readMemoryCells(document, facts);
  readVcpus(document, facts);
  readMemoryPlacement(document, facts);
  readAddressSpace(document, facts);
  readOverrides(document, facts);
  return facts;
}

DomainFacts readPlacement(std::string_view xml) {
  const Document document(xml);
  DomainFacts facts;
  readCells(document, facts);
  readVcpus(document, facts);
  readMemoryPlacement(document, facts);
  return facts;
}

std::string withEdits(std::string_view xml, const std::vector<DomainEdit>& edits) {
  const Document document(xml);
  std::vector<DomainEdit> placed;
  std::ranges::copy_if(edits, std::back_inserter(placed), [&](const DomainEdit& edit) {
    const bool required = edit.place == EditPlace::cpu || edit.place == EditPlace::pcieRoot;
    return !required || !containerAt(document, edit.place).empty();
  });
  return applySplices(xml, insertEdits(document, placed));
}

GuestMemory guestMemory(std::string_view xml) {
  const Document document(xml);
  GuestMemory memory;
  memory.domain = document.domain().child_value("name");
  memory.bytes = amountIn(document.domain().child("memory")).value_or(0);
  memory.hardLimit = amountIn(document.domain().child("memtune").child("hard_limit"));
  memory.viommu = !document.devices().child("iommu").empty();
  memory.devices = hostDeviceCount(document);
  memory.launchSecurity = launchSecurityOf(document);
  return memory;
}

VfioBackend configuredBackend(std::string_view xml) {
  const Document document(xml);
  const bool everywhere = attributeText(document.domain().child("iommufd"), "enabled") == "yes";
  const auto devices = document.devices();
  const bool followed = std::any_of(devices.begin(), devices.end(), [](pugi::xml_node device) {
    return hostAddressElement(device) && attributeText(device.child("driver"), "iommufd").empty();
  });
  return !iommufdDevices(document).empty() || (everywhere && followed) ? VfioBackend::iommufd
                                                                       : VfioBackend::container;
}

namespace {

std::string entryOf(std::string_view alias) {
  return isOurAlias(alias) ? std::string(alias.substr(aliasPrefix.size())) : std::string();
}

void readDevice(pugi::xml_node device, GuestMachine& machine) {
  const auto place = guestAddressOf(device);
  if (isPciController(device)) {
    if (const auto index = controllerIndex(device)) {
      machine.controllers.push_back(readController(device, *index));
    }
    return;
  }
  const auto hostElement = hostAddressElement(device);
  const auto host = hostElement ? readPciAddress(*hostElement) : std::nullopt;
  if (host && place) {
    machine.passed.push_back({*host, *place, entryOf(aliasOf(device))});
  } else if (place) {
    machine.others.insert(*place);
  }
}

void readCells(const Document& document, GuestMachine& machine) {
  for (const auto cell : document.domain().child("cpu").child("numa").children("cell")) {
    if (const auto id = smallNumber(attributeText(cell, "id")); id && !isEmptyCell(cell)) {
      machine.cells.push_back({*id, {}});
    }
  }
  for (const auto node : document.domain().child("numatune").children("memnode")) {
    const auto id = smallNumber(attributeText(node, "cellid"));
    const auto nodes = parseNodeSet(attributeText(node, "nodeset"));
    for (GuestCell& cell : machine.cells) {
      if (id == cell.id && nodes) {
        cell.hostNodes.insert(nodes->begin(), nodes->end());
      }
    }
  }
}

}  // namespace

namespace {

// Adopted devices have no alias of ours; their names are in the metadata.
void nameAdopted(const Document& document, GuestMachine& machine) {
  for (const Lease& lease : adoptedLeasesIn(document)) {
    for (PassedDevice& passed : machine.passed) {
      if (passed.name.empty() && passed.host == lease.device) {
        passed.name = lease.entry;
      }
    }
  }
}

}  // namespace

GuestMachine readGuestMachine(std::string_view xml) {
  const Document document(xml);
  GuestMachine machine;
  machine.domain = document.domain().child_value("name");
  machine.machine = attributeText(document.domain().child("os").child("type"), "machine");
  for (const auto device : document.devices()) {
    readDevice(device, machine);
  }
  std::ranges::sort(machine.controllers, [](const PciController& one, const PciController& other) {
    return one.index < other.index;
  });
  readCells(document, machine);
  nameAdopted(document, machine);
  addToMachine(readQemuArguments(document), machine);
  return machine;
}

GuestMachine withoutOurDevices(GuestMachine machine) {
  std::erase_if(machine.controllers,
                [](const PciController& each) { return !each.ourAlias.empty(); });
  std::erase_if(machine.passed, [](const PassedDevice& each) { return !each.name.empty(); });
  return machine;
}

}  // namespace vfpass::domain
