#include "vfpass/topology/guest_topology.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::topology {
namespace {

constexpr std::string_view expanderModel = "pcie-expander-bus";
constexpr std::string_view conventionalExpander = "pci-expander-bus";

using Children = std::map<unsigned, std::map<PciAddress, unsigned>>;  // by parent, then by place

bool isExpander(const PciController& controller) {
  return controller.model == expanderModel || controller.model == conventionalExpander;
}

Children childrenOf(const GuestMachine& machine) {
  Children children;
  for (const PciController& controller : machine.controllers) {
    if (controller.index != 0 && controller.address && !isExpander(controller)) {
      children[controller.address->bus][*controller.address] = controller.index;
    }
  }
  return children;
}

// `next`: the lowest free number. Each index is visited once, so that the recursion ends even if a
// domain XML's controllers form a loop.
void number(const Children& children, unsigned index, unsigned& next,
            std::map<unsigned, unsigned>& numbers) {
  if (!numbers.emplace(index, next).second) {
    return;
  }
  ++next;
  const auto below = children.find(index);
  if (below == children.end()) {
    return;
  }
  for (const auto& [place, child] : below->second) {
    number(children, child, next, numbers);
  }
}

// The bus behind each PCI controller, by controller index, as the guest's firmware numbers it.
// Controllers without an address, and those below them, are omitted.
std::map<unsigned, unsigned> busNumbersOf(const GuestMachine& machine) {
  const Children children = childrenOf(machine);
  std::map<unsigned, unsigned> numbers;
  unsigned next = 0;
  number(children, 0, next, numbers);
  for (const PciController& controller : machine.controllers) {
    if (isExpander(controller) && controller.busNumber) {
      next = *controller.busNumber;
      number(children, controller.index, next, numbers);
    }
  }
  return numbers;
}

constexpr unsigned highestBus = 0xff;
constexpr std::uint32_t bridgeClass = 0x060400;

FunctionRole roleOf(const PciController& controller) {
  const auto model = parseControllerModel(controller.model);
  if (!model || *model == ControllerModel::expanderBus) {
    return FunctionRole::bridge;
  }
  return *model == ControllerModel::rootPort       ? FunctionRole::rootPort
         : *model == ControllerModel::upstreamPort ? FunctionRole::upstreamPort
                                                   : FunctionRole::downstreamPort;
}

std::string bridgeName(unsigned bus) {
  constexpr std::string_view digits = "0123456789abcdef";
  return std::string("pci0000:") + digits[bus >> 4U] + digits[bus & 0xfU];
}

// Builds the tree of functions of a machine.
class Builder {
 public:
  Builder(const GuestMachine& machine, const Topology& host)
      : machine_(machine), host_(host), buses_(busNumbersOf(machine)) {}

  Topology build() {
    addNodes();
    addHostBridges();
    addBridges();
    for (const PassedDevice& device : machine_.passed) {
      addDevice(device);
    }
    sortFunctions();
    return std::move(guest_);
  }

 private:
  void addNodes() {
    guest_.processors = host_.processors;
    guest_.processors.nodes.clear();
    for (const GuestCell& cell : machine_.cells) {
      guest_.processors.nodes.push_back({static_cast<int>(cell.id), ""});
    }
  }

  void addHostBridges() {
    for (const PciController& controller : machine_.controllers) {
      const auto bus = buses_.find(controller.index);
      const bool expander = controller.busNumber.has_value();
      if (bus != buses_.end() && (controller.index == 0 || expander)) {
        bridges_[controller.index] = guest_.hostBridges.size();
        guest_.hostBridges.push_back({bridgeName(std::min(bus->second, highestBus)),
                                      controller.node ? static_cast<int>(*controller.node) : -1});
      }
    }
  }

  // Parents may come after their children, so they are set in a second pass.
  void addBridges() {
    for (const PciController& controller : machine_.controllers) {
      if (!bridges_.contains(controller.index) && controller.address &&
          buses_.contains(controller.index)) {
        ports_[controller.index] = guest_.functions.size();
        Device port;
        port.role = roleOf(controller);
        port.classCode = bridgeClass;
        place(*controller.address, port);
        guest_.functions.push_back(port);
      }
    }
    for (const PciController& controller : machine_.controllers) {
      const auto port = ports_.find(controller.index);
      if (port != ports_.end()) {
        setParent(controller.address->bus, guest_.functions[port->second]);
      }
    }
  }

  void place(const PciAddress& where, Device& function) const {
    const auto bus = buses_.find(where.bus);
    function.address = where;
    function.address.bus =
        static_cast<std::uint8_t>(std::min(bus == buses_.end() ? 0 : bus->second, highestBus));
  }

  void setParent(unsigned index, Device& function) {
    if (const auto port = ports_.find(index); port != ports_.end()) {
      function.parent = port->second;
    }
    unsigned root = index;
    for (std::size_t level = 0; level < machine_.controllers.size(); ++level) {
      const PciController* controller = machine_.controller(root);
      if (bridges_.contains(root) || controller == nullptr || !controller->address) {
        break;
      }
      root = controller->address->bus;
    }
    const auto bridge = bridges_.find(root);
    function.hostBridge = bridge == bridges_.end() ? 0 : bridge->second;
    function.numaNode =
        guest_.hostBridges.empty() ? -1 : guest_.hostBridges[function.hostBridge].numaNode;
  }

  void addDevice(const PassedDevice& device) {
    if (!buses_.contains(device.place.bus)) {
      return;
    }
    Device function;
    if (const Device* host = findFunction(host_, device.host)) {
      function = *host;
      const auto& address = host->physicalFunction;
      if (const Device* pf = address ? findFunction(host_, *address) : nullptr) {
        inheritFromPf(*pf, function);
      }
    }
    function.physicalFunction.reset();
    function.vfIndex.reset();
    function.totalVfs = function.vfCount = 0;
    function.iommuGroup.reset();
    function.parent.reset();
    function.entry = device.name;
    place(device.place, function);
    setParent(device.place.bus, function);
    guest_.functions.push_back(std::move(function));
  }

  // A VF has no link of its own, and the guest names its RDMA device.
  static void inheritFromPf(const Device& pf, Device& function) {
    function.role = pf.role;
    function.link = pf.link;
    function.best = pf.best;
    function.rdma = pf.rdma;
  }

  void sortFunctions() {
    std::vector<std::size_t> order(guest_.functions.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [this](std::size_t at) { return guest_.functions[at].address; });
    std::vector<std::size_t> number(order.size());
    std::vector<Device> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
      number[order[i]] = i;
      sorted.push_back(std::move(guest_.functions[order[i]]));
    }
    for (Device& function : sorted) {
      if (function.parent) {
        function.parent = number[*function.parent];
      }
    }
    guest_.functions = std::move(sorted);
  }

  const GuestMachine& machine_;
  const Topology& host_;
  std::map<unsigned, unsigned> buses_;
  std::map<unsigned, std::size_t> bridges_;  // controller index -> host bridge
  std::map<unsigned, std::size_t> ports_;    // controller index -> function
  Topology guest_;
};

PciController controllerOf(const GuestController& ours) {
  PciController controller;
  controller.index = ours.index;
  controller.model = toString(ours.model);
  controller.address = ours.address;
  controller.hotplug = ours.hotplug;
  controller.ourAlias = controllerAlias(ours);
  if (ours.model == ControllerModel::expanderBus) {
    controller.node = ours.node;
    controller.busNumber = ours.busNumber;
  }
  return controller;
}

void addController(const PciController& added, GuestMachine& machine) {
  if (machine.controller(added.index) == nullptr) {
    const auto place = std::ranges::find_if(
        machine.controllers,
        [&added](const PciController& each) { return each.index > added.index; });
    machine.controllers.insert(place, added);
  }
}

}  // namespace

Topology guestTopology(const GuestMachine& machine, const Topology& host) {
  return Builder(machine, host).build();
}

std::optional<PciAddress> guestAddress(const GuestMachine& machine, const PciAddress& place) {
  const auto buses = busNumbersOf(machine);
  const auto bus = buses.find(place.bus);
  if (bus == buses.end() || bus->second > highestBus) {
    return std::nullopt;
  }
  PciAddress address = place;
  address.bus = static_cast<std::uint8_t>(bus->second);
  return address;
}

GuestMachine withPlacements(GuestMachine machine, const std::vector<PlacedDevice>& devices) {
  for (const PlacedDevice& device : devices) {
    if (const auto& port = device.placement.port) {
      GuestController controller;
      controller.index = port->index;
      controller.address = port->address;
      addController(controllerOf(controller), machine);
    }
    for (const GuestController& controller : device.placement.controllers) {
      addController(controllerOf(controller), machine);
    }
    machine.passed.push_back({device.host, device.placement.address, device.name});
  }
  return machine;
}

std::vector<PciAddress> guestPath(const GuestMachine& machine, const PciAddress& place) {
  std::vector<PciAddress> upwards;
  PciAddress at = place;
  while (at.bus != 0) {
    const PciController* bridge = machine.controller(at.bus);
    if (bridge != nullptr && bridge->busNumber) {
      at.bus = static_cast<std::uint8_t>(*bridge->busNumber);
      break;
    }
    // A loop of controllers leads nowhere.
    if (bridge == nullptr || !bridge->address || upwards.size() > machine.controllers.size()) {
      return {};
    }
    upwards.push_back(at);
    at = *bridge->address;
  }
  upwards.push_back(at);
  std::reverse(upwards.begin(), upwards.end());
  return upwards;
}

std::vector<std::string> entriesBehindSwitches(const GuestMachine& machine) {
  std::vector<std::string> entries;
  for (const PassedDevice& device : machine.passed) {
    const PciController* port = machine.controller(device.place.bus);
    const bool ofSwitch =
        port != nullptr && port->model == toString(ControllerModel::downstreamPort);
    if (ofSwitch && !device.name.empty()) {
      entries.push_back(device.name);
    }
  }
  return entries;
}

}  // namespace vfpass::topology
