#include "topology_sample.hpp"

#include "hosts/topology_builder.hpp"

namespace vfpass::report::samples {
namespace {

constexpr unsigned vfsEach = 4;

void addVfs(hosts::TopologyBuilder& machine, std::size_t pf) {
  for (unsigned index = 0; index < vfsEach; ++index) {
    PciAddress address = machine.topology.functions[pf].address;
    address.function = static_cast<std::uint8_t>(index + 1);
    const auto parent = machine.topology.functions[pf].parent;
    const auto bridge = machine.topology.functions[pf].hostBridge;
    const auto vf = machine.function(FunctionRole::nic, toString(address), bridge, parent);
    machine.topology.functions[vf].physicalFunction = machine.topology.functions[pf].address;
    machine.topology.functions[vf].vfIndex = index;
    machine.topology.functions[vf].driver = "vfio-pci";
    machine.topology.functions[vf].classCode = 0x020000;
    machine.topology.functions[vf].best = machine.topology.functions[pf].best;
  }
  machine.topology.functions[pf].vfCount = vfsEach;
  machine.topology.functions[pf].totalVfs = 2 * vfsEach;
}

Lease leaseOf(const Device& function, const std::string& domain, const std::string& guest) {
  Lease lease;
  lease.domainName = domain;
  lease.domain = parseUuid("11111111-2222-4333-8444-555555555555").value();
  lease.entry = "rail0";
  lease.pf = lease.device = function.address;
  lease.guest.address = parsePciAddress(guest).value();
  return lease;
}

}  // namespace

TopologyReport topology() {
  hosts::TopologyBuilder machine;
  const auto one = machine.hostBridge("pci0000:00", 0);
  const auto two = machine.hostBridge("pci0000:80", 1);
  const auto port = machine.function(FunctionRole::rootPort, "0000:00:01.0", one);
  const auto up = machine.function(FunctionRole::upstreamPort, "0000:01:00.0", one, port);
  machine.topology.functions[up].best = {32000, 16};
  std::size_t down[4];
  for (std::size_t i = 0; i < 4; ++i) {
    down[i] = machine.function(FunctionRole::downstreamPort, "0000:02:0" + std::to_string(i) + ".0",
                               one, up);
  }
  const auto gpu0 = machine.gpu("0000:03:00.0", one, down[0]);
  static_cast<void>(machine.gpu("0000:04:00.0", one, down[1]));
  addVfs(machine, machine.pf("0000:05:00.0", "mlx5_0", one, down[2]));
  addVfs(machine, machine.pf("0000:06:00.0", "mlx5_1", one, down[3]));
  static_cast<void>(machine.gpu("0000:81:00.0", two));
  const auto slow = machine.pf("0000:82:00.0", "mlx5_2", two);
  machine.topology.functions[slow].link = {8000, 8};
  machine.topology.functions[slow].rdma[0].ports[0].state = "DOWN";
  machine.topology.processors.architecture = "x86_64";
  machine.topology.processors.vendor = "AuthenticAMD";
  machine.topology.processors.family = 25;
  machine.topology.processors.model = 17;
  for (auto& function : machine.topology.functions) {
    function.model = function.role == FunctionRole::gpu ? "NVIDIA GH100 [H100 PCIe]" : "";
  }
  TopologyReport report;
  report.topology = machine.topology;
  report.origin = "a machine for tests";
  const auto vf = [&](const char* address) {
    return *findFunction(report.topology, parsePciAddress(address).value());
  };
  report.leases = {leaseOf(report.topology.functions[gpu0], "train0", "0000:05:00.0"),
                   leaseOf(vf("0000:05:00.1"), "train0", "0000:06:00.0"),
                   leaseOf(vf("0000:06:00.2"), "web", "0000:05:00.0"),
                   leaseOf(vf("0000:06:00.3"), "web", "0000:06:00.0")};
  return report;
}

TopologyReport hostileTopology() {
  constexpr const char* name = "</text><script>\x1b[2J\"&'\xff";
  TopologyReport report = topology();
  for (auto& function : report.topology.functions) {
    function.model = function.driver = function.serial = name;
    for (auto& rdma : function.rdma) {
      rdma.name = rdma.firmware = name;
    }
    for (auto& netdev : function.netdevs) {
      netdev.name = name;
    }
  }
  report.topology.hostBridges[0].name = name;
  report.topology.processors.vendor = name;
  for (auto& lease : report.leases) {
    lease.domainName = name;
  }
  return report;
}

}  // namespace vfpass::report::samples
