#include "vfpass/report/nccl_topology.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "nccl_file.hpp"
#include "vfpass/topology/branch.hpp"

namespace vfpass::report {
namespace {

// A link is as fast as its slower end. NCCL expects the capability of both ends, not the current
// speed, which idle GPUs reduce.
PcieLink linkOf(const Topology& topology, const TopologyFunction& function) {
  PcieLink link = function.best;
  if (function.parent) {
    const PcieLink& port = topology.functions[*function.parent].best;
    if (port.speed != 0 && port.width != 0 && link.speed != 0) {
      link = {std::min(link.speed, port.speed), std::min(link.width, port.width)};
    }
  }
  return link;
}

NcclDevice deviceOf(const Topology& topology, std::size_t number) {
  const TopologyFunction& function = topology.functions[number];
  NcclDevice device;
  device.address = function.address;
  device.classCode = function.classCode;
  device.link = linkOf(topology, function);
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
bool isForNccl(const Topology& topology, const TopologyFunction& function) {
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
      topology,
      {[&](const TopologyFunction& function) { return isForNccl(topology, function); }, false});
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
  std::multimap<std::size_t, PciAddress> addresses;
  for (const GuestDevice& device : devices) {
    addresses.emplace(device.function, device.address);
  }
  const auto isGuests = [&](const TopologyFunction& function) {
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
