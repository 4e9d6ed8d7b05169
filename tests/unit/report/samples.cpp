#include "samples.hpp"

namespace vfpass::report::samples {
namespace {

Uuid uuid() { return parseUuid("8f1b3c5e-2a4d-4c6e-9f10-0123456789ab").value(); }

VfSettings settings() {
  VfSettings settings;
  settings.mac = parseMacAddress("02:11:22:33:44:55");
  settings.vlan = Vlan{100, 3, VlanProtocol::dot1ad};
  settings.rate = Rate{0, 1000};
  settings.spoofCheck = true;
  settings.linkState = LinkState::automatic;
  settings.trust = false;
  return settings;
}

VirtualFunction vf(unsigned index) {
  VirtualFunction vf;
  vf.index = index;
  vf.address = {0, 0x3b, 0, static_cast<std::uint8_t>(index + 2)};
  vf.driver = "mlx5_core";
  vf.iommuGroup = 40 + index;
  vf.settings = settings();
  vf.settingsReadable = true;
  return vf;
}

PhysicalFunction ethernetPf() {
  PhysicalFunction pf;
  pf.address = {0, 0x3b, 0, 0};
  pf.path = "pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  pf.vendor = 0x15b3;
  pf.device = 0x101d;
  pf.model = "MT2892 Family [ConnectX-6 Dx]";
  pf.serial = "MT2116X01234";
  pf.driver = "mlx5_core";
  pf.netdevs = {{"ens1f0np0", 0, true}};
  pf.rdma = {{"mlx5_0"}};
  pf.linkLayer = LinkLayer::ethernet;
  pf.numaNode = 0;
  pf.totalVfs = 8;
  pf.probesVfs = false;
  pf.vfs = {vf(0), vf(1), vf(2), vf(3)};
  pf.vfs[0].driver = "vfio-pci";
  pf.vfs[0].driverOverride = "vfio-pci";
  pf.vfs[0].vfioInUse = true;
  pf.vfs[1].netdevs = {{"ens1f0v1", 12, true, false}, {"bond\x1b[31m", 13, true, true}};
  pf.vfs[1].groupPeers = {{{0, 0x3b, 0, 0}, 0x020000, "mlx5_core"}};
  pf.vfs[2].driver.clear();
  pf.vfs[2].iommuGroup.reset();
  pf.vfs[2].settings = {};
  pf.vfs[2].settings.vlan = Vlan{};
  pf.vfs[3].settingsReadable = false;  // must be hidden although they are set
  return pf;
}

PhysicalFunction infinibandPf() {
  PhysicalFunction pf;
  pf.address = {0x10000, 0xd8, 0, 1};
  pf.vendor = 0x15b3;
  pf.device = 0x1021;
  pf.driver = "mlx5_core";
  pf.linkLayer = LinkLayer::infiniband;
  pf.totalVfs = 1;
  VirtualFunction only = vf(0);
  only.address = {0x10000, 0xd8, 0, 2};
  only.settings = {};
  only.representor = "eth\x1b[1m";
  only.settings.nodeGuid = Guid{0x0200000000000001};
  only.settings.portGuid = Guid{0x0200000000000002};
  only.settings.linkState = LinkState::enable;
  pf.vfs = {only};
  return pf;
}

PhysicalFunction barePf() {
  PhysicalFunction pf;
  pf.address = {0x10000, 0xd9, 0, 0};
  pf.vendor = 0x8086;
  pf.device = 0x1572;
  pf.totalVfs = 64;
  return pf;
}

}  // namespace

Inventory inventory() {
  Inventory inventory;
  inventory.iommuPresent = true;
  inventory.pfs = {ethernetPf(), infinibandPf(), barePf()};
  return inventory;
}

Lease lease() {
  Lease lease;
  lease.domain = uuid();
  lease.domainName = "train0";
  lease.entry = "rail0";
  lease.pf = {0, 0x3b, 0, 0};
  vfOf(lease).index = 0;
  lease.device = {0, 0x3b, 0, 2};
  vfOf(lease).settings = settings();
  lease.guest.address = {0, 5, 0, 0};
  lease.generation = 7;
  lease.state = LeaseState::running;
  return lease;
}

Lease functionLease() {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = uuid();
  lease.domainName = "train0";
  lease.entry = "gpu0";
  lease.pf = lease.device = {0, 0x3a, 0, 0};
  lease.guest.address = {0, 6, 0, 0};
  lease.generation = 7;
  lease.state = LeaseState::running;
  return lease;
}

Plan plan() {
  Plan plan;
  plan.domain = uuid();
  plan.domainName = "train0";
  const PciAddress vf{0, 0x3b, 0, 2};
  plan.steps.push_back({CreateVfs{{0, 0x3b, 0, 0}, 8, false}, {}, "the PF has no VFs", false});
  plan.steps.push_back(
      {BindDriver{vf, "vfio-pci", "vfio-pci"}, {}, "a guest needs it on vfio-pci", true});
  plan.steps.push_back({RecordLease{functionLease()}, {}, "nobody else may take it", false});
  plan.notes = {"the guest sees rail0 at 0000:05:00.0"};
  return plan;
}

}  // namespace vfpass::report::samples
