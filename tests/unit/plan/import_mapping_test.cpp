#include "vfpass/plan/import_mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

PciAddress at(const std::string& address) { return parsePciAddress(address).value(); }

const MacAddress firstMac = parseMacAddress("52:54:00:00:00:01").value();
const MacAddress secondMac = parseMacAddress("52:54:00:00:00:02").value();

/// A PF with two VFs, a GPU, and a domain that has what a test adds.
class Importing : public testing::Test {
 protected:
  Importing() {
    input.domain.bytes[0] = 1;
    input.inventory.iommuPresent = true;
    input.topology.hostBridges.push_back({"pci0000:00", 0});
    PhysicalFunction pf;
    pf.address = at("0000:3b:00.0");
    pf.driver = "mlx5_core";
    pf.vendor = 0x15b3;
    pf.classCode = 0x020000;
    pf.role = FunctionRole::nic;
    pf.totalVfs = 8;
    pf.vfCount = 2;
    pf.linkLayer = LinkLayer::ethernet;
    pf.netdevs.push_back({"ens1f0np0", 3, true, false});
    for (unsigned index = 0; index < 2; ++index) {
      VirtualFunction vf;
      vf.address = at("0000:3b:00." + std::to_string(index + 2));
      vf.physicalFunction = pf.address;
      vf.vfIndex = index;
      vf.index = index;
      vf.iommuGroup = 20 + index;
      vf.settings = neutralSettings(false);
      vf.settings.mac = index == 0 ? firstMac : secondMac;
      vf.settingsReadable = true;
      pf.vfs.push_back(vf);
      input.topology.functions.push_back(vf);
    }
    input.topology.functions.push_back(pf);
    input.inventory.pfs.push_back(pf);
    addFunction("0000:41:00.0", FunctionRole::gpu, 0x030200);
  }

  Device& addFunction(const std::string& address, FunctionRole role, std::uint32_t classCode) {
    Device function;
    function.address = at(address);
    function.role = role;
    function.classCode = classCode;
    function.iommuGroup = 40 + static_cast<unsigned>(input.inventory.functions.size());
    input.topology.functions.push_back(function);
    return input.inventory.functions.emplace_back(function);
  }

  /// Adds a device to the domain, on or off.
  HandMadeDevice& add(const std::string& address, HandMadeKind kind = HandMadeKind::hostdev) {
    HandMadeDevice device;
    device.kind = kind;
    device.form =
        kind == HandMadeKind::interface ? "<interface type='hostdev'>" : "<hostdev type='pci'>";
    device.host = parsePciAddress(address);
    device.placed = true;
    return input.configured.emplace_back(device);
  }

  HandMadeDevice& addInterface(const std::string& address) {
    HandMadeDevice& device = add(address, HandMadeKind::interface);
    device.mac = firstMac;
    return device;
  }

  [[nodiscard]] ImportedMapping imported() const {
    ImportInput sorted = input;
    std::ranges::sort(sorted.topology.functions, {}, &Device::address);
    std::ranges::sort(sorted.inventory.functions, {}, &Device::address);
    return importMapping(sorted);
  }

  /// The reason why the only device is left out.
  [[nodiscard]] LeftOut only() const {
    const ImportedMapping mapping = imported();
    EXPECT_TRUE(mapping.empty());
    EXPECT_THAT(mapping.leftOut, SizeIs(1));
    return mapping.leftOut.empty() ? LeftOut{} : mapping.leftOut.front();
  }
  [[nodiscard]] LeftOutReason reason() const { return only().reason; }

  [[nodiscard]] ImportedVf vf() const {
    const ImportedMapping mapping = imported();
    EXPECT_THAT(mapping.vfs, SizeIs(1));
    return mapping.vfs.empty() ? ImportedVf{} : mapping.vfs.front();
  }

  VfSettings& settings() { return input.inventory.pfs.front().vfs.front().settings; }
  PhysicalFunction& pf() { return input.inventory.pfs.front(); }

  static constexpr const char* firstVf = "0000:3b:00.2";
  static constexpr const char* gpu = "0000:41:00.0";
  ImportInput input;
};

TEST_F(Importing, HostdevOfVfGetsEntryWithWhatItHas) {
  add(firstVf);
  settings().vlan = Vlan{100, 3, VlanProtocol::dot1ad};
  settings().rate = Rate{0, 1000};
  settings().linkState = LinkState::enable;
  const ImportedVf entry = vf();
  EXPECT_EQ(entry.name, "vf0");
  EXPECT_EQ(entry.pf, at("0000:3b:00.0"));
  EXPECT_EQ(entry.index, 0U);
  EXPECT_EQ(entry.settings.mac, firstMac);
  EXPECT_EQ(entry.settings.vlan, (Vlan{100, 3, VlanProtocol::dot1ad}));
  EXPECT_EQ(entry.settings.rate, (Rate{0, 1000}));
  EXPECT_EQ(entry.settings.linkState, LinkState::enable);
  EXPECT_EQ(entry.settings.trust, std::nullopt);
  EXPECT_EQ(entry.settings.spoofCheck, std::nullopt);
  EXPECT_EQ(entry.sources.at(Attribute::mac), "the VF table of ens1f0np0");
  EXPECT_FALSE(entry.interfaceForm);
  EXPECT_FALSE(entry.managed);
  EXPECT_THAT(entry.notes, IsEmpty());
  EXPECT_THAT(imported().leftOut, IsEmpty());
}

TEST_F(Importing, ValuesOfInterfaceCountBeforeTable) {
  HandMadeDevice& device = addInterface(firstVf);
  device.mac = secondMac;
  device.vlan = Vlan{7, 0, VlanProtocol::dot1q};
  device.managed = true;
  settings().vlan = Vlan{100, 3, VlanProtocol::dot1ad};
  const ImportedVf entry = vf();
  EXPECT_TRUE(entry.interfaceForm);
  EXPECT_TRUE(entry.managed);
  EXPECT_EQ(entry.settings.mac, secondMac);
  EXPECT_EQ(entry.settings.vlan, (Vlan{7, 0, VlanProtocol::dot1q}));
  EXPECT_EQ(entry.sources.at(Attribute::vlan), "the domain's XML");
  device.vlan = Vlan{};
  EXPECT_EQ(vf().settings.vlan, std::nullopt);
  device.vlan.reset();
  settings().vlan = Vlan{100, 0, VlanProtocol::dot1q};
  EXPECT_EQ(vf().settings.vlan, std::nullopt);
}

TEST_F(Importing, TrustedVfNeedsAllowance) {
  add(firstVf);
  settings().trust = true;
  settings().spoofCheck = false;
  EXPECT_THAT(imported().allow, ElementsAre(Pair(Allowance::trust, "vf0 is a trusted VF")));
  EXPECT_EQ(vf().settings.trust, true);
  EXPECT_EQ(vf().settings.spoofCheck, false);
}

TEST_F(Importing, SharedGroupNeedsAllowanceUnlessTheGuestHasIt) {
  add(gpu);
  const GroupPeer audio{at("0000:41:00.1"), 0x040300, ""};
  input.inventory.functions.front().groupPeers = {audio};
  ASSERT_TRUE(imported().allow.contains(Allowance::sharedIommuGroup));
  EXPECT_THAT(imported().allow.at(Allowance::sharedIommuGroup), HasSubstr("0000:41:00.1"));
  addFunction("0000:41:00.1", FunctionRole::other, 0x040300);
  add("0000:41:00.1");
  EXPECT_THAT(imported().allow, IsEmpty());
  input.inventory.unsafeInterrupts = true;
  EXPECT_TRUE(imported().allow.contains(Allowance::unsafeInterrupts));
}

TEST_F(Importing, MacThatNobodyKnowsIsLeftAlone) {
  add(firstVf);
  settings().mac = MacAddress{};
  EXPECT_EQ(vf().settings.mac, std::nullopt);
  EXPECT_THAT(vf().notes, ElementsAre(HasSubstr("the guest chooses one")));
  settings() = {};
  EXPECT_THAT(vf().notes, ElementsAre(HasSubstr("cannot be read")));
}

TEST_F(Importing, SwitchdevModeHasNoLegacyAttributes) {
  add(firstVf);
  settings().trust = true;
  settings().vlan = Vlan{100, 0, VlanProtocol::dot1q};
  input.eswitchModes[pf().address] = EswitchMode::switchdev;
  EXPECT_EQ(vf().settings.trust, std::nullopt);
  EXPECT_EQ(vf().settings.vlan, std::nullopt);
  EXPECT_EQ(vf().settings.mac, firstMac);
  EXPECT_THAT(vf().notes, ElementsAre(HasSubstr("switchdev mode")));
  EXPECT_THAT(imported().allow, IsEmpty());
}

TEST_F(Importing, InfinibandVfKeepsGuidsThatCanBeRead) {
  add(firstVf);
  pf().linkLayer = LinkLayer::infiniband;
  settings() = {};
  EXPECT_EQ(vf().settings.nodeGuid, std::nullopt);
  EXPECT_THAT(vf().notes, ElementsAre(HasSubstr("GUIDs cannot be read")));
  settings().nodeGuid = Guid{1};
  settings().portGuid = Guid{2};
  EXPECT_EQ(vf().settings.nodeGuid, Guid{1});
  EXPECT_EQ(vf().settings.portGuid, Guid{2});
  EXPECT_THAT(vf().notes, IsEmpty());
  settings().portGuid = Guid{~std::uint64_t{0}};  // unset
  EXPECT_EQ(vf().settings.nodeGuid, std::nullopt);
  EXPECT_THAT(vf().sources, IsEmpty());
}

TEST_F(Importing, ManagedIsNotStatedWithoutProbing) {
  add(firstVf).managed = true;
  EXPECT_TRUE(vf().managed);
  pf().probesVfs = false;
  EXPECT_FALSE(vf().managed);
  EXPECT_THAT(vf().notes, ElementsAre(HasSubstr("sriov_drivers_autoprobe")));
}

TEST_F(Importing, FileSetsValueOnlyWhereTableCannotBeRead) {
  add(firstVf);
  BootPolicy policy;
  policy.file = "/etc/systemd/network/10.link";
  policy.manager = "systemd";
  policy.pf = pf().address;
  policy.vf = 0;
  policy.text = "[SR-IOV] VLANId=5";
  policy.settings.vlan = Vlan{5, 0, VlanProtocol::dot1q};
  policy.remedy = "remove the section";
  input.bootPolicies = {policy};
  EXPECT_EQ(vf().settings.vlan, std::nullopt);  // the table says none
  EXPECT_THAT(vf().notes,
              ElementsAre("/etc/systemd/network/10.link sets [SR-IOV] VLANId=5, now none. "
                          "Once attached, remove the section."));
  settings().vlan.reset();
  EXPECT_EQ(vf().settings.vlan->id, 5);
  EXPECT_EQ(vf().sources.at(Attribute::vlan), "/etc/systemd/network/10.link");
  input.running = input.configured;  // attach could not compare it
  EXPECT_EQ(vf().settings.vlan, std::nullopt);
  EXPECT_THAT(vf().notes, ElementsAre(HasSubstr("because the guest runs. Once attached")));
  input.running.clear();
  pf().reportsNoVfs = true;
  EXPECT_EQ(vf().settings.vlan, std::nullopt);
  input.bootPolicies.front().vf = 1;
  EXPECT_THAT(vf().notes, IsEmpty());
}

TEST_F(Importing, SettingsOfThePfAreListedApart) {
  add(firstVf);
  BootPolicy policy;
  policy.file = "/etc/netplan/01.yaml";
  policy.pf = pf().address;
  policy.vfCount = 8;
  input.bootPolicies = {policy};
  ASSERT_THAT(imported().unclear, SizeIs(1));
  input.bootPolicies.front().pf = at("0000:5b:00.0");
  EXPECT_THAT(imported().unclear, IsEmpty());
  input.bootPolicies.front().pf.reset();
  EXPECT_THAT(imported().unclear, SizeIs(1));
  input.bootPolicies.front().vf = 0;  // `ip link set $PF vf 0 ...`
  EXPECT_THAT(imported().unclear, SizeIs(1));
  input.bootPolicies.front().pf = pf().address;
  EXPECT_THAT(imported().unclear, IsEmpty());
}

TEST_F(Importing, GpusAndOtherFunctionsAreListedApart) {
  add(gpu);
  addFunction("0000:42:00.0", FunctionRole::other, 0x010802);
  add("0000:42:00.0").alias = "ua-scratch";
  const auto functions = imported().functions;
  ASSERT_THAT(functions, SizeIs(2));
  EXPECT_TRUE(functions[0].isGpu);
  EXPECT_EQ(functions[0].name, "gpu0");
  EXPECT_FALSE(functions[1].isGpu);
  EXPECT_EQ(functions[1].name, "scratch");
}

TEST_F(Importing, NamesAreUniqueAndValid) {
  add(firstVf).alias = "ua-vf1";
  add("0000:3b:00.3").alias = "ua-vf1";
  add(gpu).alias = "ua-with space";
  const ImportedMapping mapping = imported();
  ASSERT_THAT(mapping.vfs, SizeIs(2));
  EXPECT_EQ(mapping.vfs[0].name, "vf1");
  EXPECT_EQ(mapping.vfs[1].name, "vf0");
  EXPECT_EQ(mapping.functions.at(0).name, "gpu0");
}

TEST_F(Importing, TeamedVfTakesMacOfItsPartner) {
  add(firstVf).teaming = HandMadeTeaming{"transient", "ua-net0"};
  input.interfaces = {{"ua-net0", firstMac, "virtio", "persistent"}};
  EXPECT_EQ(vf().teamingWith, "net0");
  EXPECT_EQ(vf().settings.mac, std::nullopt);
}

// One test for each reason.

TEST_F(Importing, LeavesOutDeviceOfVfpass) {
  add(firstVf).ours = true;
  EXPECT_EQ(reason(), LeftOutReason::managed);
}

TEST_F(Importing, LeavesOutLeasedDeviceAndPfOfLeasedVf) {
  Lease lease;
  lease.part = LeasedVf{};
  lease.domainName = "other\n";
  lease.pf = at("0000:3b:00.0");
  lease.device = at(firstVf);
  input.leases = {lease};
  add(firstVf);
  EXPECT_EQ(reason(), LeftOutReason::managed);
  EXPECT_EQ(only().message, "it is leased to domain other\\x0a");
  input.configured.front().host = lease.pf;
  EXPECT_EQ(only().message, "a VF of it is leased to domain other\\x0a");
}

TEST_F(Importing, LeavesOutDeviceInQuarantineAndVfOfSuchAPf) {
  const auto quarantine = [&](const char* device) {
    input.inventory.quarantined = {{at(device), "its reset failed: EIO", "2026-11-28T12:00:00Z"}};
  };
  add(firstVf);
  quarantine(firstVf);
  EXPECT_EQ(reason(), LeftOutReason::quarantine);
  EXPECT_THAT(only().message, HasSubstr("its reset failed: EIO"));
  EXPECT_THAT(only().remedy, HasSubstr(std::string("quarantine release ") + firstVf));
  quarantine("0000:3b:00.0");
  EXPECT_EQ(reason(), LeftOutReason::quarantine);
  EXPECT_THAT(only().message, HasSubstr("its PF has been in quarantine"));
  quarantine("0000:3b:00.3");
  EXPECT_FALSE(imported().vfs.empty());
}

TEST_F(Importing, LeavesOutDevicesThatAreNoFunctions) {
  for (const auto& [kind, expected] :
       {std::pair{HandMadeKind::otherBus, LeftOutReason::otherBus},
        std::pair{HandMadeKind::capability, LeftOutReason::otherBus},
        std::pair{HandMadeKind::mediated, LeftOutReason::mediated},
        std::pair{HandMadeKind::arguments, LeftOutReason::arguments},
        std::pair{HandMadeKind::nvmeDisk, LeftOutReason::nvmeDisk}}) {
    input.configured.clear();
    add(firstVf, kind);
    EXPECT_EQ(reason(), expected);
  }
}

TEST_F(Importing, LeavesOutInterfaceOfPoolAndIgnoresThatOfOtherNetworks) {
  add("", HandMadeKind::fromNetwork).network = "pool";
  EXPECT_THAT(imported().leftOut, IsEmpty());
  input.pools = {{"pool", {}, {"ens9"}}};
  EXPECT_EQ(reason(), LeftOutReason::network);
}

TEST_F(Importing, LeavesOutMacvtapOfVfAndIgnoresThatOfOtherNetdevs) {
  add("", HandMadeKind::macvtap).netdev = "ens1f0v0";
  EXPECT_THAT(imported().leftOut, IsEmpty());
  pf().vfs.front().netdevs = {{"ens1f0v0", 7, true, false}};
  EXPECT_EQ(reason(), LeftOutReason::macvtap);
  EXPECT_THAT(only().message, HasSubstr("netdev ens1f0v0"));
  input.configured.front().netdev = "ens1f0np0";
  EXPECT_THAT(imported().leftOut, IsEmpty());
}

TEST_F(Importing, LeavesOutVfInPool) {
  add(firstVf);
  input.pools = {{"pool", {}, {"ens1f0np0"}}};
  EXPECT_EQ(reason(), LeftOutReason::network);
  input.pools = {{"pool", {at(firstVf)}, {}}};
  EXPECT_EQ(reason(), LeftOutReason::network);
  input.pools = {{"pool", {}, {"ens9"}}};
  EXPECT_THAT(imported().vfs, SizeIs(1));
}

TEST_F(Importing, LeavesOutInvalidAddressAndMissingFunction) {
  add("");
  EXPECT_EQ(reason(), LeftOutReason::invalid);
  input.configured.front().host = at("0000:99:00.0");
  EXPECT_EQ(reason(), LeftOutReason::missing);
  input.configured.front().placed = false;
  EXPECT_EQ(reason(), LeftOutReason::invalid);
}

TEST_F(Importing, LeavesOutDeviceClaimedTwice) {
  add(firstVf);
  addInterface(firstVf);
  const ImportedMapping mapping = imported();
  ASSERT_THAT(mapping.leftOut, SizeIs(2));
  EXPECT_EQ(mapping.leftOut[0].reason, LeftOutReason::claimedTwice);
  EXPECT_EQ(mapping.leftOut[1].reason, LeftOutReason::claimedTwice);
  input.configured[1].kind = HandMadeKind::arguments;
  EXPECT_EQ(imported().leftOut[0].reason, LeftOutReason::claimedTwice);
}

TEST_F(Importing, LeavesOutDeviceOfOtherDomainOrMapping) {
  add(firstVf);
  DomainSummary other;
  other.name = "other";
  other.claims = {{at(firstVf), "", {}}};
  input.domains = {other};
  EXPECT_EQ(reason(), LeftOutReason::otherDomain);
  input.domains.front().uuid = input.domain;
  EXPECT_THAT(imported().vfs, SizeIs(1));
  Mapping mapping;
  mapping.vm = "off";
  mapping.vfs.emplace_back().pf.netdev = "ens1f0np0";
  mapping.vfs.front().index = 0;
  input.otherMappings = {mapping};
  EXPECT_EQ(reason(), LeftOutReason::otherDomain);
  input.otherMappings.front().vfs.front().index = 1;
  EXPECT_THAT(imported().vfs, SizeIs(1));
}

TEST_F(Importing, LeavesOutWhatOnlyTheRunningDomainHas) {
  add(firstVf);
  input.running = input.configured;
  input.configured.clear();
  EXPECT_EQ(reason(), LeftOutReason::runningOnly);
  // A network's pool shows up as an interface of its own.
  input.running.front().mac = firstMac;
  add("", HandMadeKind::fromNetwork).mac = firstMac;
  EXPECT_THAT(imported().leftOut, IsEmpty());
}

TEST_F(Importing, LeavesOutPf) {
  add("0000:3b:00.0");
  EXPECT_EQ(reason(), LeftOutReason::pf);
  EXPECT_THAT(only().message, HasSubstr("of which 2 exist"));
}

TEST_F(Importing, LeavesOutFunctionThatNoGuestCanHave) {
  Device& port = addFunction("0000:3a:00.0", FunctionRole::rootPort, 0x060400);
  add(toString(port.address));
  EXPECT_EQ(reason(), LeftOutReason::function);
  input.configured.front().host = at(gpu);
  input.inventory.functions.front().bootVga = true;
  EXPECT_EQ(reason(), LeftOutReason::function);
}

TEST_F(Importing, LeavesOutVfOfOtherDriver) {
  Device& disk = addFunction("0000:50:00.0", FunctionRole::other, 0x010802);
  input.topology.functions.back().driver = "nvme";
  const PciAddress parent = disk.address;
  addFunction("0000:50:00.1", FunctionRole::other, 0x010802);
  input.topology.functions.back().physicalFunction = parent;
  add("0000:50:00.1");
  EXPECT_EQ(reason(), LeftOutReason::driver);
  EXPECT_THAT(only().message, HasSubstr("driver nvme"));
}

TEST_F(Importing, LeavesOutUnknownVfioDriver) {
  add(firstVf).driver = "mlx5_vfio_pci";
  EXPECT_EQ(reason(), LeftOutReason::driver);
  input.configured.front().driver = "vfio";
  EXPECT_THAT(imported().vfs, SizeIs(1));
  input.configured.front().host = at(gpu);
  input.configured.front().driver = "nvgrace_gpu_vfio_pci";
  EXPECT_EQ(imported().functions.at(0).driver, "nvgrace_gpu_vfio_pci");
}

TEST_F(Importing, LeavesOutWhatAnEntryCannotExpress) {
  HandMadeDevice& device = addInterface(firstVf);
  device.vlanFault = "its <vlan> has several tags";
  EXPECT_EQ(reason(), LeftOutReason::settings);
  device.vlanFault.clear();
  settings().vlan = Vlan{5, 3, VlanProtocol::dot1q};
  EXPECT_EQ(reason(), LeftOutReason::settings);
  settings().vlan.reset();
  device.mac.reset();
  EXPECT_EQ(reason(), LeftOutReason::settings);
  device.mac = firstMac;
  EXPECT_THAT(imported().vfs, SizeIs(1));
  pf().linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(reason(), LeftOutReason::settings);
  device.host = at(gpu);
  EXPECT_EQ(reason(), LeftOutReason::settings);
}

TEST_F(Importing, LeavesOutSecondVfWithTheSameMac) {
  add(firstVf);
  add("0000:3b:00.3");
  pf().vfs[1].settings.mac = firstMac;
  const ImportedMapping mapping = imported();
  EXPECT_THAT(mapping.vfs, SizeIs(1));
  ASSERT_THAT(mapping.leftOut, SizeIs(1));
  EXPECT_EQ(mapping.leftOut[0].reason, LeftOutReason::settings);
}

TEST_F(Importing, LeavesOutTeamThatCannotBeAnEntrys) {
  HandMadeDevice& device = add(firstVf);
  device.teaming = HandMadeTeaming{"transient", "ua-net0"};
  EXPECT_EQ(reason(), LeftOutReason::teaming);  // no such interface
  input.interfaces = {{"ua-net0", secondMac, "virtio", "persistent"}};
  EXPECT_EQ(reason(), LeftOutReason::teaming);  // another MAC
  input.interfaces.front().mac = firstMac;
  EXPECT_THAT(imported().vfs, SizeIs(1));
  device.teaming->persistent = "net0";
  EXPECT_EQ(reason(), LeftOutReason::teaming);  // libvirt's own alias changes
  device.teaming->type = "persistent";
  EXPECT_EQ(reason(), LeftOutReason::teaming);
}

TEST(LeftOutText, NamesElementDeviceAndReason) {
  EXPECT_EQ(describe(LeftOut{"<hostdev type='pci'>", at("0000:3b:00.0"), LeftOutReason::pf,
                             "it is a PF", "give"}),
            "<hostdev type='pci'> 0000:3b:00.0: it is a PF");
  EXPECT_EQ(describe(LeftOut{"<x\n>", {}, LeftOutReason::otherBus, "no", ""}), "<x\\x0a>: no");
  EXPECT_EQ(toString(LeftOutReason::claimedTwice), "claimed-twice");
  EXPECT_EQ(toString(LeftOutReason::teaming), "teaming");
}

BootPolicy countOf(unsigned count) {
  BootPolicy policy;
  policy.file = "/etc/netplan/01.yaml";
  policy.manager = "netplan";
  policy.pf = at("0000:3b:00.0");
  policy.vfCount = count;
  return policy;
}

TEST(ImportedHostYaml, HasPfsWithVfsAndThoseThatFilesSetUp) {
  Inventory inventory;
  PhysicalFunction pf;
  pf.address = at("0000:3b:00.0");
  pf.totalVfs = 8;
  inventory.pfs = {pf};
  EXPECT_THAT(importHost(inventory, {}, {}).pfs, IsEmpty());

  auto host = importHost(inventory, {}, {countOf(4)});
  ASSERT_THAT(host.pfs, SizeIs(1));
  EXPECT_EQ(host.pfs[0].vfCount, 4U);
  EXPECT_EQ(host.pfs[0].countSource, "/etc/netplan/01.yaml");
  EXPECT_EQ(importHost(inventory, {}, {countOf(4000)}).pfs.at(0).vfCount, 8U);

  inventory.pfs[0].vfs.resize(2);
  const PfSettings settings{EswitchMode::switchdev, LinkSettings{9000, true}};
  host = importHost(inventory, {{pf.address, settings}}, {countOf(4)});
  EXPECT_EQ(host.pfs.at(0).vfCount, 2U);
  EXPECT_EQ(host.pfs[0].countSource, "");
  EXPECT_EQ(host.pfs[0].eswitchMode, EswitchMode::switchdev);
  EXPECT_EQ(host.pfs[0].link->mtu, 9000U);

  BootPolicy unclear = countOf(3);
  unclear.pf.reset();
  EXPECT_THAT(importHost(inventory, {}, {unclear}).unclear, SizeIs(1));
}

}  // namespace
}  // namespace vfpass::plan
