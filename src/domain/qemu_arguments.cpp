#include "qemu_arguments.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

constexpr std::size_t mostDevices = 4096;  // a guest has 256 buses
constexpr JsonLimits deviceLimits{65536, 4, 1024};

// The next `KEY=VALUE` of an option; a comma in a value is doubled (QEMU's get_opt_value).
std::string takeProperty(std::string_view& option) {
  std::string taken;
  while (!option.empty()) {
    const char letter = option.front();
    const bool doubled = option.starts_with(",,");
    option.remove_prefix(doubled ? 2 : 1);
    if (letter == ',' && !doubled) {
      break;
    }
    taken += letter;
  }
  return taken;
}

// `vfio-pci,host=0000:41:00.0,bus=rp1`: the first property may lack its key, which is `driver`.
QemuDevice deviceOfOption(std::string_view option) {
  QemuDevice device;
  for (bool first = true; !option.empty(); first = false) {
    const std::string property = takeProperty(option);
    const auto equals = property.find('=');
    if (equals == std::string::npos && first) {
      device.properties["driver"] = property;
    } else {
      device.properties[property.substr(0, equals)] =
          equals == std::string::npos ? "on" : property.substr(equals + 1);
    }
  }
  return device;
}

// `{"driver": "vfio-pci", "host": "0000:41:00.0"}`
QemuDevice deviceOfJson(std::string_view text) {
  QemuDevice device;
  const nlohmann::json document = parseBoundedJson(text, deviceLimits);
  for (const auto& [name, value] : document.items()) {
    device.properties[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return device;
}

void addDevice(std::string_view text, QemuArguments& arguments) {
  try {
    QemuDevice device = text.starts_with('{') ? deviceOfJson(text) : deviceOfOption(text);
    device.driver = device.property("driver");
    if (device.isVfio() && !device.hostFunction() &&
        device.property("sysfsdev").find("/mdev") == std::string::npos) {
      arguments.doubt = "a device " + printable(device.driver) +
                        " whose `host` or `sysfsdev` names no PCI function";
    }
    arguments.devices.push_back(std::move(device));
  } catch (const JsonRefused& refused) {
    arguments.doubt = std::string("a -device whose JSON cannot be read: ") + refused.what();
  }
}

// `device.hostdev0.x-nv-gpudirect-clique=0`
void addSetting(std::string_view text, QemuArguments& arguments) {
  constexpr std::string_view group = "device.";
  const auto name = text.substr(0, text.find('='));
  const auto dot = name.rfind('.');
  if (name.starts_with(group) && dot != std::string_view::npos && dot >= group.size()) {
    arguments.overrides.add(name.substr(group.size(), dot - group.size()), name.substr(dot + 1));
  }
}

// QEMU accepts each option with one dash and with two.
std::string_view optionName(std::string_view argument) {
  argument.remove_prefix(argument.starts_with("--") ? 2 : argument.starts_with('-') ? 1 : 0);
  return argument;
}

// `[[DOMAIN:]BUS:]SLOT.FUNCTION` with hexadecimal numbers of any width, as in QEMU's
// set_pci_host_devaddr.
std::optional<PciAddress> hostAddress(std::string_view text) {
  const auto dot = text.rfind('.');
  const auto slotAt = text.rfind(':', dot);
  if (dot == std::string_view::npos || slotAt == std::string_view::npos) {
    return std::nullopt;
  }
  const auto head = text.substr(0, slotAt);
  const auto busAt = head.rfind(':');
  const auto domain = busAt == std::string_view::npos ? std::optional<std::uint64_t>(0)
                                                      : parseNumber(head.substr(0, busAt), 16);
  const auto bus = parseNumber(head.substr(busAt == std::string_view::npos ? 0 : busAt + 1), 16);
  const auto slot = parseNumber(text.substr(slotAt + 1, dot - slotAt - 1), 16);
  const auto function = parseNumber(text.substr(dot + 1), 16);
  if (!domain || !bus || !slot || !function || *domain > 0xffffffffU || *bus > 0xff ||
      *slot > 0x1f || *function > 7) {
    return std::nullopt;
  }
  return PciAddress{static_cast<std::uint32_t>(*domain), static_cast<std::uint8_t>(*bus),
                    static_cast<std::uint8_t>(*slot), static_cast<std::uint8_t>(*function)};
}

std::optional<std::uint64_t> numberIn(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  return parseNumber(text.substr(hexadecimal ? 2 : 0), hexadecimal ? 16 : 10);
}

}  // namespace

void PropertyOverrides::add(std::string_view alias, std::string_view property) {
  if (property == "x-nv-gpudirect-clique") {
    cliques.emplace(alias);
  } else if (property == "x-speed" || property == "x-width") {
    links.emplace(alias);
  }
}

std::string QemuDevice::property(const std::string& name) const {
  const auto found = properties.find(name);
  return found == properties.end() ? std::string() : found->second;
}

bool QemuDevice::isVfio() const {
  return driver.starts_with("vfio-pci") || driver == "pci-assign" || driver == "kvm-pci-assign";
}

std::optional<PciAddress> QemuDevice::hostFunction() const {
  if (!isVfio()) {
    return std::nullopt;
  }
  if (const std::string host = property("host"); !host.empty()) {
    return hostAddress(host);
  }
  std::string path = property("sysfsdev");
  while (path.ends_with('/')) {
    path.pop_back();
  }
  return parsePciAddress(std::string_view(path).substr(path.rfind('/') + 1));
}

QemuArguments readQemuArguments(const Document& document) {
  QemuArguments arguments;
  std::string_view option;
  for (const auto node : document.domain().child(argumentsElement).children("qemu:arg")) {
    const auto value = attributeText(node, "value");
    if (arguments.devices.size() >= mostDevices) {
      arguments.doubt = "more than " + std::to_string(mostDevices) + " devices";
      break;
    }
    if (option == "device") {
      addDevice(value, arguments);
    } else if (option == "set") {
      addSetting(value, arguments);
    } else if (option == "readconfig") {
      arguments.doubt = "-readconfig, whose file can add devices";
    } else {
      option = value.starts_with('-') ? optionName(value) : std::string_view();
      continue;
    }
    option = {};
  }
  return arguments;
}

std::optional<PciAddress> rootBusPlace(const QemuDevice& device) {
  const std::string bus = device.property("bus");
  const std::string text = device.property("addr");
  if (text.empty() || (bus != "pcie.0" && bus != "pci.0" && !bus.empty())) {
    return std::nullopt;
  }
  // Hexadecimal `SLOT[.FUNCTION]` with or without 0x (QEMU's set_pci_devfn).
  const auto part = [](std::string_view number) {
    return parseNumber(number.substr(number.starts_with("0x") ? 2 : 0), 16);
  };
  const auto dot = text.find('.');
  const auto slot = part(std::string_view(text).substr(0, dot));
  const auto function = dot == std::string::npos ? 0 : part(std::string_view(text).substr(dot + 1));
  if (!slot || !function || *slot > 0x1f || *function > 7) {
    return std::nullopt;
  }
  return PciAddress{0, 0, static_cast<std::uint8_t>(*slot), static_cast<std::uint8_t>(*function)};
}

namespace {

constexpr unsigned firstIndex = 256;
constexpr unsigned lastBus = 0xff;
// For a bridge without an address: QEMU chooses a slot that is free. This one is always taken.
constexpr PciAddress takenSlot{0, 0, 0x1f, 0};

// QEMU's additional root buses, with a number of their own. The conventional one has a bridge below
// it.
bool isExpander(const QemuDevice& device) { return device.driver.starts_with("pxb"); }

// Bridges, which have a bus below them, by QEMU's names (hw/pci-bridge).
bool isBridge(const QemuDevice& device) {
  constexpr std::array drivers{"pcie-root-port",
                               "ioh3420",
                               "x3130-upstream",
                               "xio3130-downstream",
                               "pcie-upstream-port",
                               "pcie-downstream-port",
                               "pcie-pci-bridge",
                               "pci-bridge",
                               "cxl-rp",
                               "cxl-upstream",
                               "cxl-downstream",
                               "i82801b11-bridge"};
  return std::ranges::find(drivers, device.driver) != drivers.end();
}

// The expander above the bridge; null if it is on the root bus or below a controller of libvirt.
const QemuDevice* expanderAbove(const std::map<std::string, const QemuDevice*>& byId,
                                const QemuDevice& bridge) {
  constexpr unsigned mostBuses = 256;  // in one chain, which may also be a loop
  const QemuDevice* at = &bridge;
  for (unsigned level = 0; level < mostBuses; ++level) {
    const auto parent = byId.find(at->property("bus"));
    if (parent == byId.end()) {
      return nullptr;
    }
    if (isExpander(*parent->second)) {
      return parent->second;
    }
    at = parent->second;
  }
  return nullptr;
}

// QEMU identifies a port by chassis and slot (pcie_chassis_add_slot); libvirt's ports have slot 0.
std::optional<unsigned> chassisOf(const QemuDevice& device) {
  const std::string slot = device.property("slot");
  const auto chassis = numberIn(device.property("chassis"));
  const bool canCollide = isBridge(device) && (slot.empty() || numberIn(slot) == 0U);
  return canCollide && chassis && *chassis <= lastBus
             ? std::optional(static_cast<unsigned>(*chassis))
             : std::nullopt;
}

struct Buses {
  std::vector<const QemuDevice*> onRoot;         // bridges that are not below an expander
  std::map<const QemuDevice*, unsigned> needed;  // of each expander, with the bridges below it
};

Buses busesOf(const std::vector<QemuDevice>& devices) {
  Buses buses;
  std::map<std::string, const QemuDevice*> byId;
  for (const QemuDevice& device : devices) {
    if (const std::string id = device.property("id"); !id.empty()) {
      byId.emplace(id, &device);
    }
    if (isExpander(device)) {
      buses.needed[&device] = device.driver == "pxb" ? 2 : 1;
    }
  }
  for (const QemuDevice& device : devices) {
    if (!isBridge(device)) {
      continue;
    }
    if (const QemuDevice* expander = expanderAbove(byId, device)) {
      ++buses.needed[expander];
    } else {
      buses.onRoot.push_back(&device);
    }
  }
  return buses;
}

}  // namespace

void addToMachine(const QemuArguments& arguments, GuestMachine& machine) {
  unsigned index = firstIndex;
  const auto addController = [&](std::optional<PciAddress> address, std::optional<unsigned> bus) {
    PciController controller;
    controller.index = index++;
    controller.address = address;
    controller.busNumber = bus;
    machine.controllers.push_back(controller);
  };
  const Buses buses = busesOf(arguments.devices);
  for (const QemuDevice& device : arguments.devices) {
    if (const auto place = rootBusPlace(device)) {
      machine.others.insert(*place);
    }
    if (const auto chassis = chassisOf(device)) {
      addController(std::nullopt, std::nullopt);
      machine.controllers.back().chassis = chassis;
    }
  }
  for (const QemuDevice* bridge : buses.onRoot) {
    addController(rootBusPlace(*bridge).value_or(takenSlot), std::nullopt);
  }
  for (const auto& [expander, count] : buses.needed) {
    const auto first = numberIn(expander->property("bus_nr"));
    for (unsigned number = 0; first && number < count && *first + number <= lastBus; ++number) {
      addController(std::nullopt, static_cast<unsigned>(*first) + number);
    }
  }
}

}  // namespace vfpass::domain
