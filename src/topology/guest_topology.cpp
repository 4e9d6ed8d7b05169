#include "vfpass/topology/guest_topology.hpp"

#include <algorithm>

#include "bus_numbers.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::topology {
namespace {

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
        TopologyFunction port;
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

  void place(const PciAddress& where, TopologyFunction& function) const {
    const auto bus = buses_.find(where.bus);
    function.address = where;
    function.address.bus =
        static_cast<std::uint8_t>(std::min(bus == buses_.end() ? 0 : bus->second, highestBus));
  }

  void setParent(unsigned index, TopologyFunction& function) {
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

  const TopologyFunction* hostFunction(const PassedDevice& device) const {
    return findFunction(host_, device.host);
  }

  void addDevice(const PassedDevice& device) {
    if (!buses_.contains(device.place.bus)) {
      return;
    }
    TopologyFunction function;
    if (const TopologyFunction* host = hostFunction(device)) {
      function = *host;
      if (host->physicalFunction) {
        inheritFromPf(host_.functions[*host->physicalFunction], function);
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
  static void inheritFromPf(const TopologyFunction& pf, TopologyFunction& function) {
    function.role = pf.role;
    function.link = pf.link;
    function.best = pf.best;
    function.rdma = pf.rdma;
  }

  void sortFunctions() {
    std::vector<std::size_t> order(guest_.functions.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::sort(order.begin(), order.end(), [this](std::size_t one, std::size_t other) {
      return guest_.functions[one].address < guest_.functions[other].address;
    });
    std::vector<std::size_t> number(order.size());
    std::vector<TopologyFunction> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
      number[order[i]] = i;
      sorted.push_back(std::move(guest_.functions[order[i]]));
    }
    for (TopologyFunction& function : sorted) {
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
    const auto place =
        std::find_if(machine.controllers.begin(), machine.controllers.end(),
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

}  // namespace vfpass::topology
