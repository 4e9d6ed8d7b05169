#include <algorithm>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <ostream>
#include <pugixml.hpp>
#include <string>
#include <utility>
#include <vector>

#include "topology_words.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::report {
namespace {

/// One `<pci>` element.
struct NcclDevice {
  PciAddress address;
  std::uint32_t classCode = 0;
  PcieLink link;
  /// Vendor, device and subsystem IDs, by which NCCL recognizes the nested switches of a PEX chip.
  std::vector<std::pair<std::string, std::uint16_t>> identity;
  std::vector<NcclDevice> below;
};

/// One `<cpu>` element.
struct NcclCpu {
  int node = 0;
  std::string affinity;
  std::vector<NcclDevice> below;
};

constexpr std::size_t maxNodes = 256;       // NCCL_TOPO_XML_MAX_NODES of NCCL 2.28
constexpr std::size_t maxTextLength = 255;  // of an attribute value

// Allow-listed characters: NCCL's parser does not unescape.
std::string plain(std::string text) {
  std::erase_if(text, [](char c) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return !word && std::string_view(" ,.:/_-").find(c) == std::string_view::npos;
  });
  return text.substr(0, maxTextLength);
}

void appendValue(pugi::xml_node element, const std::string& name, const std::string& value) {
  element.append_attribute(name.c_str()).set_value(plain(value).c_str());
}

// The line break and indentation before the next tag. pugixml's own formatting writes ` />`, whose
// space NCCL's parser reads as the beginning of another attribute; only its raw format does not.
void breakLine(pugi::xml_node element, std::size_t depth) {
  element.append_child(pugi::node_pcdata).set_value(("\n" + std::string(2 * depth, ' ')).c_str());
}

// In NCCL's format: `32.0 GT/s PCIe`.
std::string speedText(unsigned speed) {
  return std::to_string(speed / 1000) + "." + std::to_string(speed % 1000 / 100) + " GT/s PCIe";
}

// NCCL computes the family from CPUID as base family plus sixteen times the extended family; the
// kernel adds both, and a base family below 15 has no extended family. So AMD's family 25 is 175
// for NCCL.
unsigned ncclFamily(const Processors& processors) {
  constexpr unsigned extendedFrom = 15;
  const bool extended = processors.architecture == "x86_64" && processors.family > extendedFrom;
  return extended ? extendedFrom + (processors.family - extendedFrom) * 16 : processors.family;
}

std::size_t countNodes(const std::vector<NcclDevice>& devices) {
  std::size_t count = devices.size();
  for (const NcclDevice& device : devices) {
    count += countNodes(device.below);
  }
  return count;
}

void requireRoom(const std::vector<NcclCpu>& cpus) {
  std::size_t count = 1 + cpus.size();
  for (const NcclCpu& cpu : cpus) {
    count += countNodes(cpu.below);
  }
  if (count > maxNodes) {
    throw Error("NCCL topology file: " + std::to_string(count) +
                    " nodes on this host exceed NCCL's limit of " + std::to_string(maxNodes),
                "use `--vm` to write the file of one guest");
  }
}

void appendDevices(pugi::xml_node parent, const std::vector<NcclDevice>& devices,
                   std::size_t depth);

void appendDevice(pugi::xml_node parent, const NcclDevice& device, std::size_t depth) {
  breakLine(parent, depth);
  auto element = parent.append_child("pci");
  appendValue(element, "busid", toString(device.address));
  appendValue(element, "class", "0x" + hexText(device.classCode, 6));
  for (const auto& [name, number] : device.identity) {
    appendValue(element, name, "0x" + hexText(number, 4));
  }
  if (device.link.speed != 0 && device.link.width != 0) {  // without them, NCCL reads sysfs
    appendValue(element, "link_speed", speedText(device.link.speed));
    appendValue(element, "link_width", std::to_string(device.link.width));
  }
  if (!device.below.empty()) {
    appendDevices(element, device.below, depth);
  }
}

// The devices are one level deeper than their parent, whose end tag gets a line of its own.
void appendDevices(pugi::xml_node parent, const std::vector<NcclDevice>& devices,
                   std::size_t depth) {
  for (const NcclDevice& device : devices) {
    appendDevice(parent, device, depth + 1);
  }
  breakLine(parent, depth);
}

void appendCpu(pugi::xml_node system, const Processors& processors, const NcclCpu& cpu) {
  breakLine(system, 1);
  auto element = system.append_child("cpu");
  appendValue(element, "numaid", std::to_string(cpu.node));
  appendValue(element, "affinity", cpu.affinity);
  appendValue(element, "arch", processors.architecture);
  appendValue(element, "vendor", processors.vendor);
  appendValue(element, "familyid", std::to_string(ncclFamily(processors)));
  appendValue(element, "modelid", std::to_string(processors.model));
  appendDevices(element, cpu.below, 1);
}

/// NCCL has its own parser, which requires exactly this format: no prolog, no tabs, single spaces,
/// one line per tag. Throws Error if the file exceeds NCCL's limit of nodes.
void writeNcclFile(std::ostream& out, const Processors& processors,
                   const std::vector<NcclCpu>& cpus) {
  requireRoom(cpus);
  pugi::xml_document document;
  auto system = document.append_child("system");
  appendValue(system, "version", "1");
  for (const NcclCpu& cpu : cpus) {
    appendCpu(system, processors, cpu);
  }
  breakLine(system, 0);
  document.save(out, "", pugi::format_raw | pugi::format_no_declaration);
  out << '\n';
}

NcclDevice deviceOf(const Topology& topology, std::size_t number) {
  const Device& function = topology.functions[number];
  NcclDevice device;
  device.address = function.address;
  device.classCode = function.classCode;
  // The capability of both ends, as in NCCL's own detection: idle GPUs reduce the current speed.
  device.link = topology::linkAbove(topology, number).possible;
  device.identity = {{"vendor", function.vendor},
                     {"device", function.device},
                     {"subsystem_vendor", function.subsystemVendor},
                     {"subsystem_device", function.subsystemDevice}};
  return device;
}

// Converts a function or port of the host to its device in the file.
using Describe = std::function<std::vector<NcclDevice>(std::size_t function)>;
using Bridge = std::function<NcclDevice(std::size_t port)>;

std::vector<NcclDevice> devicesOf(const topology::Branch& branch, const Describe& device,
                                  const Bridge& bridge) {
  std::vector<NcclDevice> devices;
  for (const std::size_t number : branch.devices) {
    for (auto& described : device(number)) {
      devices.push_back(std::move(described));
    }
  }
  for (const topology::Branch& inner : branch.branches) {
    NcclDevice described = bridge(*inner.port);
    described.below = devicesOf(inner, device, bridge);
    devices.push_back(std::move(described));
  }
  return devices;
}

// Each port of a NIC is a function, but NCCL looks for the NIC at function 0 (NCCL_IB_MERGE_VFS).
bool isForNccl(const Topology& topology, const Device& function) {
  if (function.physicalFunction) {
    return false;
  }
  PciAddress first = function.address;
  first.function = 0;
  const bool hasFirst = first != function.address && findFunction(topology, first) != nullptr;
  return function.role == FunctionRole::gpu || (isPf(function) && !hasFirst);
}

// Devices without a known node go to the first one: they need some `<cpu>` above them.
int nodeOf(const Topology& topology, std::size_t hostBridge) {
  const int node = topology.hostBridges[hostBridge].numaNode;
  const auto& nodes = topology.processors.nodes;
  return node >= 0 ? node : nodes.empty() ? 0 : nodes.front().number;
}

// Sixteen words: twice as many would not fit into an attribute of 255 characters, and no guest has
// as many CPUs.
std::string everyCpu() {
  constexpr int words = 16;
  std::string mask = "ffffffff";
  for (int i = 1; i < words; ++i) {
    mask += ",ffffffff";
  }
  return mask;
}

std::vector<NcclCpu> inOrder(std::map<int, NcclCpu> cpus) {
  std::vector<NcclCpu> ordered;
  for (auto& [node, cpu] : cpus) {
    ordered.push_back(std::move(cpu));
  }
  return ordered;
}

// Adds the devices below each host bridge to the CPU of its node.
void addBranches(const Topology& topology, const std::vector<topology::Branch>& branches,
                 const Describe& device, const Bridge& bridge, std::map<int, NcclCpu>& cpus) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    auto devices = devicesOf(branches[i], device, bridge);
    if (devices.empty()) {
      continue;
    }
    const int node = nodeOf(topology, i);
    auto& below = cpus.try_emplace(node, NcclCpu{node, {}, {}}).first->second.below;
    std::move(devices.begin(), devices.end(), std::back_inserter(below));
  }
}

// The guest node of each host node, if the guest reports one.
std::map<int, int> guestNodes(const Topology& topology, const std::vector<GuestDevice>& devices) {
  std::map<int, int> nodes;
  for (const GuestDevice& device : devices) {
    if (device.numaNode >= 0) {
      nodes.emplace(nodeOf(topology, topology.functions[device.function].hostBridge),
                    device.numaNode);
    }
  }
  return nodes;
}

// No guest has a bus 0xff in a domain 0xffff.
PciAddress inventedAddress(unsigned count) {
  return {0xffff, static_cast<std::uint8_t>(0xff - count / 32),
          static_cast<std::uint8_t>(count % 32), 0};
}

}  // namespace

void writeNcclTopology(std::ostream& out, const Topology& topology) {
  const auto branches = topology::branchesOf(
      topology, {[&](const Device& function) { return isForNccl(topology, function); }, false});
  std::map<int, NcclCpu> cpus;
  for (const NumaNode& node : topology.processors.nodes) {
    cpus[node.number] = {node.number, node.cpuMask, {}};
  }
  addBranches(
      topology, branches,
      [&](std::size_t number) { return std::vector{deviceOf(topology, number)}; },
      [&](std::size_t number) { return deviceOf(topology, number); }, cpus);
  writeNcclFile(out, topology.processors, inOrder(std::move(cpus)));
}

void writeGuestNcclTopology(std::ostream& out, const Topology& topology,
                            const std::vector<GuestDevice>& devices) {
  // Functions of the host that the guest has, with their guest addresses; a PF may stand for
  // several VFs.
  std::multimap<std::size_t, PciAddress> addresses;
  for (const GuestDevice& device : devices) {
    addresses.emplace(device.function, device.address);
  }
  const auto isGuests = [&](const Device& function) {
    return addresses.contains(static_cast<std::size_t>(&function - topology.functions.data()));
  };
  const auto inGuest = [&](std::size_t number) {
    std::vector<NcclDevice> found;
    const auto [first, last] = addresses.equal_range(number);
    for (auto at = first; at != last; ++at) {
      found.push_back(deviceOf(topology, number));
      found.back().address = at->second;
      found.back().identity.clear();
    }
    return found;
  };
  // The host's switches get addresses that no device of the guest has.
  unsigned switches = 0;
  const auto invented = [&](std::size_t number) {
    NcclDevice device = deviceOf(topology, number);
    device.address = inventedAddress(++switches);
    device.classCode = 0x060400;
    device.identity.clear();
    return device;
  };
  std::map<int, NcclCpu> cpus;
  addBranches(topology, topology::branchesOf(topology, {isGuests}), inGuest, invented, cpus);
  // The guest's own numbers of NUMA nodes, if it reports one for each of the host's; otherwise in
  // order.
  const auto nodes = guestNodes(topology, devices);
  auto ordered = inOrder(std::move(cpus));
  int node = 0;
  for (NcclCpu& cpu : ordered) {
    const auto known = nodes.find(cpu.node);
    cpu.node = nodes.size() == ordered.size() && known != nodes.end() ? known->second : node;
    ++node;
    cpu.affinity = everyCpu();
  }
  writeNcclFile(out, topology.processors, ordered);
}

}  // namespace vfpass::report
