#include "vfpass/topology/mirror.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "mirror_parts.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {
namespace {

constexpr std::size_t namedPairs = 4;

// Two VFs of one PF, or of two ports of a card, count as devices of one switch.
Distance hostDistance(const MirrorInput& input, std::size_t one, std::size_t other) {
  const auto& devices = input.devices;
  return std::max(Distance::pix,
                  distance(input.host, devices[one].function, devices[other].function));
}

bool isBelowSwitch(const Topology& host, std::size_t function) {
  const auto parent = host.functions[function].parent;
  return parent && host.functions[*parent].role == FunctionRole::downstreamPort;
}

// Devices are never plugged directly behind a port that leads to a switch, so below an expander bus
// (native PCIe hotplug) its hotplug is off, and firmware reserves no window. Below pcie-root QEMU
// uses ACPI hotplug, and a port without hotplug takes the hotplug handler from everything below it
// (acpi_pcihp_device_plug_cb in QEMU 7.2): the guest would then never release a device.
bool plugsByAcpi(unsigned root) { return root == 0; }

class TreeBuilder {
 public:
  TreeBuilder(const MirrorInput& input, const std::map<int, unsigned>& cells)
      : input_(input), cells_(cells), controllers_(input.guest), ports_(input.devices.size()) {}

  std::vector<GuestPlacement> make() {
    keep();
    for (const std::size_t device : freshByAddress()) {
      place(device);
    }
    controllers_.dropUnneeded(reserveSpares());
    numberExpanders(input_.guest, controllers_);
    return placements();
  }

 private:
  void keep() {
    auto earlier = input_.earlier;
    std::ranges::sort(earlier, {}, &GuestController::index);
    for (const GuestController& controller : earlier) {
      controllers_.adopt(controller);
    }
    for (std::size_t device = 0; device < ports_.size(); ++device) {
      const auto& kept = input_.devices[device].kept;
      if (kept && controllers_.isFreePort(kept->bus)) {
        assignPort(device, kept->bus);
      }
    }
  }

  void assignPort(std::size_t device, unsigned port) {
    controllers_.occupy(port);
    ports_[device] = port;
  }

  // Sorted by address, so that the order of the mapping's entries does not matter.
  [[nodiscard]] std::vector<std::size_t> freshByAddress() const {
    std::vector<std::size_t> fresh;
    for (std::size_t device = 0; device < ports_.size(); ++device) {
      if (!ports_[device]) {
        fresh.push_back(device);
      }
    }
    std::ranges::stable_sort(fresh, {},
                             [this](std::size_t device) { return hostOf(device).address; });
    return fresh;
  }

  [[nodiscard]] const Device& hostOf(std::size_t device) const {
    return input_.host.functions[input_.devices[device].function];
  }

  // The port of a placed device that is at most this far away on the host.
  [[nodiscard]] std::optional<unsigned> portNear(std::size_t device, Distance most) const {
    for (std::size_t other = 0; other < ports_.size(); ++other) {
      if (ports_[other] && hostDistance(input_, device, other) <= most) {
        return ports_[other];
      }
    }
    return std::nullopt;
  }

  void place(std::size_t device) {
    // A device of the same switch (PIX) is already placed.
    const auto beside = portNear(device, Distance::pix);
    if (const auto same = beside ? controllers_.switchOf(*beside) : std::nullopt) {
      return assignPort(device, freePortOf(*same));
    }
    // A device below the same host root port (PXB) is: a new switch below the outermost one.
    const auto near = portNear(device, Distance::pxb);
    if (const auto outer = near ? controllers_.outermostSwitchOf(*near) : std::nullopt) {
      const unsigned port = controllers_.add(ControllerModel::downstreamPort, *outer,
                                             plugsByAcpi(controllers_.rootOf(*outer)));
      return assignPort(device, freePortOf(controllers_.add(ControllerModel::upstreamPort, port)));
    }
    const unsigned root = rootFor(device);
    assignPort(device, freePortOf(wantsSwitch(device) ? addSwitch(root) : root));
  }

  // True when the host has a switch above the device, so that a device added later can be placed
  // beside it, or when another device is at distance PIX.
  [[nodiscard]] bool wantsSwitch(std::size_t device) const {
    if (isBelowSwitch(input_.host, input_.devices[device].function)) {
      return true;
    }
    for (std::size_t other = 0; other < ports_.size(); ++other) {
      if (other != device && hostDistance(input_, device, other) == Distance::pix) {
        return true;
      }
    }
    return false;
  }

  unsigned rootFor(std::size_t device) {
    if (const auto near = portNear(device, Distance::phb)) {
      return controllers_.rootOf(*near);
    }
    const bool first =
        std::ranges::none_of(ports_, [](const auto& port) { return port.has_value(); });
    if (first && input_.guest.cells.empty()) {
      return 0;
    }
    const unsigned expander = controllers_.add(ControllerModel::expanderBus, 0);
    if (const auto cell = cells_.find(hostOf(device).numaNode); cell != cells_.end()) {
      controllers_.setNode(expander, cell->second);
    }
    return expander;
  }

  unsigned addSwitch(unsigned root) {
    for (const unsigned port : controllers_.below(root)) {
      const auto children = controllers_.below(port);
      if (children.size() == 1 && controllers_.isUnused(port)) {
        return children.front();  // left by a removed device
      }
    }
    const unsigned port = controllers_.add(ControllerModel::rootPort, root, plugsByAcpi(root));
    return controllers_.add(ControllerModel::upstreamPort, port);
  }

  // A free port of a switch or a host bridge that is not in `spare`; adds one if there is none.
  unsigned freePortOf(unsigned place, const std::set<unsigned>& spare = {}) {
    for (const unsigned port : controllers_.below(place)) {
      if (controllers_.isFreePort(port) && !spare.contains(port)) {
        return port;
      }
    }
    const auto upstream = controllers_.all().find(place);
    const bool isSwitch = upstream != controllers_.all().end() &&
                          upstream->second.model == ControllerModel::upstreamPort;
    return controllers_.add(isSwitch ? ControllerModel::downstreamPort : ControllerModel::rootPort,
                            place);
  }

  // Reserves free ports at each switch with a device behind it, and at each host bridge with a
  // device that is behind no switch.
  std::set<unsigned> reserveSpares() {
    std::set<unsigned> places;
    for (const auto& port : ports_) {
      places.insert(controllers_.all().at(port.value()).address.bus);
    }
    std::set<unsigned> spare;
    for (const unsigned place : places) {
      for (unsigned count = 0; count < input_.sparePorts; ++count) {
        spare.insert(freePortOf(place, spare));
      }
    }
    return spare;
  }

  [[nodiscard]] std::vector<GuestPlacement> placements() const {
    std::vector<GuestPlacement> placements;
    std::set<unsigned> named;
    for (const auto& port : ports_) {
      GuestPlacement placement;
      placement.address = {0, static_cast<std::uint8_t>(port.value()), 0, 0};
      for (const unsigned index : controllers_.pathTo(*port)) {
        placement.controllers.push_back(controllers_.all().at(index));
        named.insert(index);
      }
      placements.push_back(std::move(placement));
    }
    addUnnamed(named, placements);
    return placements;
  }

  // Records ports without a device in the first entry's lease.
  void addUnnamed(const std::set<unsigned>& named, std::vector<GuestPlacement>& placements) const {
    for (const auto& [index, controller] : controllers_.all()) {
      if (!named.contains(index) && !placements.empty()) {
        placements.front().controllers.push_back(controller);
      }
    }
    for (GuestPlacement& placement : placements) {
      std::ranges::sort(placement.controllers, {}, &GuestController::index);
    }
  }

  const MirrorInput& input_;
  const std::map<int, unsigned>& cells_;
  ControllerSet controllers_;
  std::vector<std::optional<unsigned>> ports_;  // by device: index of the port that it sits behind
};

std::optional<MirrorFault> machineFault(const GuestMachine& guest) {
  if (guest.pciExpress()) {
    return std::nullopt;
  }
  return MirrorFault{
      "domain " + printable(guest.domain) + " has machine type " + printable(guest.machine) +
          ", which has no PCI Express root for mirroring the host's tree",
      "set `topology: flat` in its mapping, or define it with machine type q35 (on aarch64: virt)"};
}

// Controllers of libvirt have lower indexes; those of `<qemu:commandline>` have these.
constexpr unsigned ownIndexes = 256;

// QEMU identifies ports by chassis and slot, and ports of vfpass use their index as chassis.
std::optional<MirrorFault> chassisFault(const GuestMachine& guest, const Mirror& mirror) {
  for (const PciController& foreign : guest.controllers) {
    for (const GuestPlacement& placement : mirror.placements) {
      for (const GuestController& ours : placement.controllers) {
        if (foreign.chassis == ours.index && foreign.index >= ownIndexes) {
          return MirrorFault{"a port in <qemu:commandline> of domain " + printable(guest.domain) +
                                 " has chassis " + std::to_string(ours.index) +
                                 ", which the mirrored tree needs",
                             "give that port another chassis, such as chassis=200, or set "
                             "`topology: flat`"};
        }
        if (foreign.chassis == ours.index) {
          return MirrorFault{
              "controller " + std::to_string(foreign.index) + " of domain " +
                  printable(guest.domain) + " has chassis " + std::to_string(ours.index) +
                  ", which the mirrored tree needs",
              "remove chassis='" + std::to_string(ours.index) +
                  "' from its <target>, so that libvirt chooses another, or set `topology: flat`"};
        }
      }
    }
  }
  return std::nullopt;
}

std::vector<PlacedDevice> placedDevices(const MirrorInput& input,
                                        const std::vector<GuestPlacement>& placements) {
  std::vector<PlacedDevice> placed;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    placed.push_back({input.devices[i].name,
                      input.host.functions[input.devices[i].function].address, placements[i]});
  }
  return placed;
}

std::string distanceText(const std::optional<Distance>& distance) {
  return distance ? std::string(toString(*distance)) : "no path";
}

// Pairs whose distance in the guest differs from the host's, usually because their guest addresses
// were kept.
std::vector<std::string> differingPairs(const MirrorInput& input,
                                        const std::vector<GuestPlacement>& placements) {
  const GuestMachine machine = withPlacements(input.guest, placedDevices(input, placements));
  const DeviceMatrix guest = guestMatrix(machine, input.host);
  const DeviceMatrix host = hostMatrix(machine, input.host);
  std::vector<std::string> pairs;
  for (std::size_t one = 0; one < placements.size(); ++one) {
    for (std::size_t other = one + 1; other < placements.size(); ++other) {
      const auto& [first, second] = std::tie(input.devices[one].name, input.devices[other].name);
      const auto seen = guest.between(first, second);
      const auto wanted = host.between(first, second);
      if (seen != wanted) {
        pairs.push_back(first + " and " + second + ": " + distanceText(seen) + " in the guest, " +
                        distanceText(wanted) + " on the host");
      }
    }
  }
  return pairs;
}

void noteDifferences(const MirrorInput& input, Mirror& mirror) {
  auto pairs = differingPairs(input, mirror.placements);
  if (pairs.empty()) {
    return;
  }
  if (pairs.size() > namedPairs) {
    const std::size_t more = pairs.size() - namedPairs;
    pairs.resize(namedPairs);
    pairs.push_back("and " + std::to_string(more) + " more pairs");
  }
  mirror.notes.push_back(
      "guest addresses are kept, so the tree differs from the host's: " + join(pairs, "; ") +
      "; to lay it out again, run `vfpass detach` and `vfpass attach`");
}

void noteMissingCells(const MirrorInput& input, Mirror& mirror) {
  const bool numa = std::ranges::any_of(input.devices, [&](const auto& each) {
    return input.host.functions[each.function].numaNode >= 0;
  });
  if (input.guest.cells.empty() && numa && input.host.processors.nodes.size() > 1) {
    mirror.notes.push_back("domain " + printable(input.guest.domain) +
                           " has no NUMA cells: its devices show no NUMA node in the guest; add "
                           "<cpu><numa> cells to change that");
  }
}

std::set<int> nodesOf(const MirrorInput& input) {
  std::set<int> nodes;
  for (const MirrorDevice& device : input.devices) {
    const int node = input.host.functions[device.function].numaNode;
    if (node >= 0) {
      nodes.insert(node);
    }
  }
  return nodes;
}

}  // namespace

Mirror mirrorTree(const MirrorInput& input) {
  // Only PCI Express has expander buses, ports and switches.
  Mirror mirror;
  if (const auto fault = machineFault(input.guest)) {
    mirror.faults.push_back(*fault);
    return mirror;
  }
  // The cell of each host node determines the expander bus of its devices.
  CellChoice choice = chooseCells(input.guest, nodesOf(input));
  mirror.notes = std::move(choice.notes);
  mirror.faults = std::move(choice.faults);
  if (!mirror.faults.empty()) {
    return mirror;
  }
  // Build the tree in the slots, indices and bus numbers that the domain leaves free.
  try {
    mirror.placements = TreeBuilder(input, choice.cells).make();
  } catch (const NoRoom& full) {
    mirror.faults.push_back(
        {"the mirrored tree does not fit into domain " + printable(input.guest.domain) + ": " +
             full.what(),
         "remove PCI devices or controllers that it does not need, run `vfpass detach` and `vfpass "
         "attach` to lay the tree out again, or set `topology: flat`"});
    return mirror;
  }
  if (const auto fault = chassisFault(input.guest, mirror)) {
    mirror.faults.push_back(*fault);
    mirror.placements.clear();
    return mirror;
  }
  noteMissingCells(input, mirror);
  noteDifferences(input, mirror);
  return mirror;
}

}  // namespace vfpass::topology
