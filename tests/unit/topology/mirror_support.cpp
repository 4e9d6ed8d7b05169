#include "mirror_support.hpp"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "hosts/topology_builder.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"
#include "vfpass/topology/nearest_pf.hpp"

namespace vfpass::topology {
namespace {

namespace fs = std::filesystem;

const char* const uuid = "11111111-2222-3333-4444-555555555555";

Topology capturedHost(const std::string& name) {
  std::string pattern = (fs::temp_directory_path() / "vfpass-host-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("mkdtemp failed");
  }
  const std::string command = std::string(VFPASS_SOURCE_DIR) + "/tests/hosts/make_host.py " + name +
                              " " + pattern + "/host";
  if (std::system(command.c_str()) != 0) {  // NOLINT: it contains no external data
    throw std::runtime_error(command + " failed");
  }
  Topology topology = inventory::readTopology(host::Root(pattern + "/host"));
  fs::remove_all(pattern);
  return topology;
}

std::string bus(unsigned number) {
  constexpr std::string_view digits = "0123456789abcdef";
  return std::string("0000:") + digits[number >> 4U] + digits[number & 0xfU];
}

// Adds a switch below a new root port and returns its upstream port. Takes three bus numbers from
// `next` on.
std::size_t addSwitch(hosts::TopologyBuilder& host, std::size_t bridge, unsigned rootBus,
                      unsigned slot, unsigned next) {
  const auto port = host.function(FunctionRole::rootPort,
                                  bus(rootBus) + ":0" + std::to_string(slot) + ".0", bridge);
  return host.function(FunctionRole::upstreamPort, bus(next) + ":00.0", bridge, port);
}

std::size_t addPort(hosts::TopologyBuilder& host, std::size_t bridge, unsigned number,
                    unsigned slot, std::size_t upstream) {
  return host.function(FunctionRole::downstreamPort,
                       bus(number) + ":0" + std::to_string(slot) + ".0", bridge, upstream);
}

// Four nodes, numbered 1, 3, 5, 7; a switch with two GPUs and two NICs on each.
Topology nps4() {
  hosts::TopologyBuilder host;
  for (unsigned node = 0; node < 4; ++node) {
    const unsigned first = node * 0x20;
    const auto bridge = host.hostBridge("pci" + bus(first), static_cast<int>(node * 2 + 1));
    const auto upstream = addSwitch(host, bridge, first, 1, first + 1);
    for (unsigned slot = 0; slot < 4; ++slot) {
      const auto port = addPort(host, bridge, first + 2, slot, upstream);
      const std::string address = bus(first + 3 + slot) + ":00.0";
      if (slot % 2 == 0) {
        host.gpu(address, bridge, port);
      } else {
        host.pf(address, "mlx5_" + std::to_string(node * 2 + slot / 2), bridge, port);
      }
    }
  }
  return host.sorted();
}

// One node; two root ports with a tree of three levels each: a switch with a GPU and two inner
// switches, each with a GPU and a NIC.
Topology nested() {
  hosts::TopologyBuilder host;
  const auto bridge = host.hostBridge("pci0000:00", 0);
  unsigned nics = 0;
  for (unsigned tree = 0; tree < 2; ++tree) {
    unsigned next = 0x10 + tree * 0x20;
    const auto outer = addSwitch(host, bridge, 0, tree + 1, next);
    host.gpu(bus(next + 0x10) + ":00.0", bridge, addPort(host, bridge, next + 1, 0, outer));
    for (unsigned inner = 0; inner < 2; ++inner) {
      const auto down = addPort(host, bridge, next + 1, inner + 1, outer);
      const unsigned first = next + 2 + inner * 5;
      const auto upstream =
          host.function(FunctionRole::upstreamPort, bus(first) + ":00.0", bridge, down);
      host.gpu(bus(first + 2) + ":00.0", bridge, addPort(host, bridge, first + 1, 0, upstream));
      host.pf(bus(first + 3) + ":00.0", "mlx5_" + std::to_string(nics++), bridge,
              addPort(host, bridge, first + 1, 1, upstream));
    }
  }
  return host.sorted();
}

// Two nodes; every device on its own root port.
Topology noSwitches() {
  hosts::TopologyBuilder host;
  unsigned nics = 0;
  for (unsigned node = 0; node < 2; ++node) {
    const unsigned first = node * 0x80;
    const auto bridge = host.hostBridge("pci" + bus(first), static_cast<int>(node));
    for (unsigned slot = 1; slot < 9; ++slot) {
      const auto port = host.function(FunctionRole::rootPort,
                                      bus(first) + ":0" + std::to_string(slot) + ".0", bridge);
      const std::string address = bus(first + slot) + ":00.0";
      if (slot % 2 == 0) {
        host.gpu(address, bridge, port);
      } else {
        host.pf(address, "mlx5_" + std::to_string(nics++), bridge, port);
      }
    }
  }
  return host.sorted();
}

std::string cellElement(const TestCell& cell) {
  return "      <cell id='" + std::to_string(cell.id) + "' cpus='" + std::to_string(cell.id) +
         "' memory='524288' unit='KiB'/>\n";
}

std::string numatune(const std::vector<TestCell>& cells) {
  std::string nodes;
  for (const TestCell& cell : cells) {
    if (cell.hostNode >= 0) {
      nodes += "    <memnode cellid='" + std::to_string(cell.id) + "' mode='strict' nodeset='" +
               std::to_string(cell.hostNode) + "'/>\n";
    }
  }
  return nodes.empty() ? "" : "  <numatune>\n" + nodes + "  </numatune>\n";
}

std::string cpu(const std::vector<TestCell>& cells) {
  std::string elements;
  for (const TestCell& cell : cells) {
    elements += cellElement(cell);
  }
  return elements.empty() ? ""
                          : "  <cpu mode='host-passthrough' check='none' migratable='on'>\n"
                            "    <numa>\n" +
                                elements + "    </numa>\n  </cpu>\n";
}

}  // namespace

Topology testHost(const std::string& name) {
  if (name == "nps4") {
    return nps4();
  }
  if (name == "nested") {
    return nested();
  }
  return name == "no-switches" ? noSwitches() : capturedHost(name);
}

SealKey testKey() { return {std::vector<std::uint8_t>(32, 7), "test-host"}; }

std::string testDomain(const std::vector<TestCell>& cells) {
  const std::string vcpus = std::to_string(std::max<std::size_t>(1, cells.size()));
  const std::string memory = std::to_string(524288 * std::max<std::size_t>(1, cells.size()));
  return "<domain type='kvm'>\n"
         "  <name>train0</name>\n"
         "  <uuid>" +
         std::string(uuid) +
         "</uuid>\n"
         "  <memory unit='KiB'>" +
         memory +
         "</memory>\n"
         "  <currentMemory unit='KiB'>" +
         memory +
         "</currentMemory>\n"
         "  <vcpu placement='static'>" +
         vcpus + "</vcpu>\n" + numatune(cells) +
         "  <os>\n"
         "    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>\n"
         "    <boot dev='hd'/>\n"
         "  </os>\n" +
         cpu(cells) +
         "  <devices>\n"
         "    <emulator>/usr/bin/qemu-system-x86_64</emulator>\n"
         "    <controller type='usb' index='0' model='none'/>\n"
         "    <controller type='pci' index='0' model='pcie-root'/>\n"
         "    <controller type='pci' index='1' model='pcie-root-port'>\n"
         "      <model name='pcie-root-port'/>\n"
         "      <target chassis='1' port='0x10'/>\n"
         "      <address type='pci' domain='0x0000' bus='0x00' slot='0x02' function='0x0'/>\n"
         "    </controller>\n"
         "    <controller type='sata' index='0'>\n"
         "      <address type='pci' domain='0x0000' bus='0x00' slot='0x1f' function='0x2'/>\n"
         "    </controller>\n"
         "    <memballoon model='virtio'>\n"
         "      <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>\n"
         "    </memballoon>\n"
         "  </devices>\n"
         "</domain>\n";
}

std::vector<TestCell> cellsFor(const Topology& host, const std::vector<std::size_t>& functions) {
  std::set<int> nodes;
  for (const std::size_t function : functions) {
    nodes.insert(host.functions[function].numaNode);
  }
  std::vector<TestCell> cells;
  for (const int node : nodes) {
    cells.push_back({static_cast<unsigned>(cells.size()), node});
  }
  return cells;
}

std::vector<std::size_t> railsOf(const Topology& host, std::size_t count) {
  std::vector<std::size_t> functions;
  for (const Rail& rail : rails(host)) {
    if (functions.size() < 2 * count) {
      functions.push_back(rail.gpu);
      functions.push_back(rail.pf.value());
    }
  }
  return functions;
}

std::vector<std::pair<std::string, std::size_t>> named(const std::vector<std::size_t>& functions) {
  std::vector<std::pair<std::string, std::size_t>> devices;
  for (const std::size_t function : functions) {
    devices.emplace_back("dev" + std::to_string(devices.size()), function);
  }
  return devices;
}

Mirror MirroredDomain::attach(const std::vector<std::pair<std::string, std::size_t>>& devices,
                              unsigned sparePorts) {
  const GuestMachine machine = domain::withoutOurDevices(domain::readGuestMachine(bare_));
  MirrorInput input{host_, machine, {}, {}, sparePorts};
  for (const Lease& lease : leases_) {
    input.earlier.insert(input.earlier.end(), lease.guest.controllers.begin(),
                         lease.guest.controllers.end());
  }
  for (const auto& [name, function] : devices) {
    const auto earlier =
        std::find_if(leases_.begin(), leases_.end(),
                     [&, entry = name](auto& each) { return each.entry == entry; });
    input.devices.push_back(
        {name, function,
         earlier == leases_.end() ? std::nullopt : std::optional(earlier->guest.address)});
  }
  Mirror mirror = mirrorTree(input);
  if (!mirror.faults.empty()) {
    throw std::runtime_error(mirror.faults.front().what);
  }
  leases_.clear();
  functions_.clear();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Lease lease;
    lease.part = LeasedFunction{};
    lease.domain = parseUuid(uuid).value();
    lease.domainName = "train0";
    lease.entry = devices[i].first;
    lease.device = lease.pf = host_.functions[devices[i].second].address;
    lease.guest = mirror.placements[i];
    leases_.push_back(lease);
    functions_.push_back(devices[i].second);
  }
  return mirror;
}

std::string MirroredDomain::xml() const {
  return domain::withLeases(bare_, leases_, domain::builtInTemplates(), testKey());
}

Topology MirroredDomain::guest() const {
  return guestTopology(domain::readGuestMachine(xml()), host_);
}

const Lease& MirroredDomain::lease(const std::string& name) const {
  return *std::find_if(leases_.begin(), leases_.end(),
                       [&name](const Lease& each) { return each.entry == name; });
}

std::vector<std::string> MirroredDomain::differences() const {
  const Topology tree = guest();
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < tree.functions.size(); ++i) {
    places[tree.functions[i].entry] = i;
  }
  std::vector<std::string> lines;
  for (std::size_t one = 0; one < leases_.size(); ++one) {
    for (std::size_t other = one + 1; other < leases_.size(); ++other) {
      const auto wanted =
          std::max(Distance::pix, distance(host_, functions_[one], functions_[other]));
      const auto seen =
          distance(tree, places.at(leases_[one].entry), places.at(leases_[other].entry));
      if (seen != wanted) {
        lines.push_back(leases_[one].entry + " " + leases_[other].entry + ": " +
                        std::string(toString(seen)) + " for " + std::string(toString(wanted)));
      }
    }
  }
  return lines;
}

std::vector<HostAndRails> mirroredHosts() {
  return {{"h100-8", 1},      {"h100-8", 2},      {"h100-8", 4},      {"h100-8", 8},
          {"two-sockets", 1}, {"two-sockets", 2}, {"two-sockets", 4}, {"nested", 1},
          {"nested", 2},      {"nested", 4},      {"nps4", 1},        {"nps4", 2},
          {"nps4", 4},        {"nps4", 8},        {"no-switches", 1}, {"no-switches", 2},
          {"no-switches", 4}, {"no-switches", 8}};
}

std::string mirroredDomain(const HostAndRails& wanted) {
  const Topology host = testHost(wanted.host);
  const auto functions = railsOf(host, wanted.rails);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(named(functions));
  return domain.xml();
}

}  // namespace vfpass::topology
