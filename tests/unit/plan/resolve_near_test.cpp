#include "vfpass/plan/select_pf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Node 0: gpu0 beside two PFs on one bus. Node 1: gpu1 alone.
class ResolveNearTest : public testing::Test {
 protected:
  ResolveNearTest() {
    const auto near = machine.hostBridge("pci0000:00", 0);
    const auto far = machine.hostBridge("pci0000:80", 1);
    static_cast<void>(machine.pf("0000:01:00.0", "mlx5_0", near));
    static_cast<void>(machine.pf("0000:02:00.0", "mlx5_1", near));
    static_cast<void>(machine.gpu("0000:03:00.0", near));
    static_cast<void>(machine.gpu("0000:81:00.0", far));
    kernel.addPf("0000:01:00.0", "ens1", 8, 4);
    kernel.addPf("0000:02:00.0", "ens2", 8, 4);
    mapping.vm = "train0";
    mapping.functions = {{"gpu0", *parsePciAddress("0000:03:00.0"), {}},
                         {"gpu1", *parsePciAddress("0000:81:00.0"), {}},
                         {"lost", *parsePciAddress("0000:99:00.0"), {}}};
  }

  void add(const std::string& name, const std::string& gpu) {
    MappedVf vf;
    vf.name = name;
    vf.pf.near = gpu;
    vf.place = {"train0.yaml", 4, 5};
    mapping.vfs.push_back(vf);
  }

  void lease(const std::string& entry, const std::string& pf, const Uuid& owner, unsigned index) {
    Lease lease;
    lease.domain = owner;
    lease.entry = entry;
    lease.pf = *parsePciAddress(pf);
    vfOf(lease).index = index;
    leases.push_back(lease);
  }

  NearResolution resolve() {
    inventory = kernel.inventory();
    return resolveNear({mapping, policy, inventory, machine.topology, leases, domain});
  }

  std::vector<std::string> pfs() {
    std::vector<std::string> found;
    for (const auto& vf : resolve().mapping.vfs) {
      found.push_back(toString(vf.pf));
    }
    return found;
  }

  hosts::TopologyBuilder machine;
  fake::FakeKernel kernel;
  Mapping mapping;
  HostPolicy policy;
  Inventory inventory;
  std::vector<Lease> leases;
  Uuid domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  Uuid other = *parseUuid("ffffffff-1111-4222-8333-944455566677");
};

TEST_F(ResolveNearTest, DistributesEntriesAndReportsTies) {
  add("rail0", "gpu0");
  add("rail1", "gpu0");
  add("rail2", "gpu0");
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:01:00.0", "pci 0000:02:00.0", "pci 0000:01:00.0"));
  EXPECT_THAT(resolve().reasons[0],
              HasSubstr("rail0: nearest to gpu0 is PF 0000:01:00.0 (ens1), PHB"));
  EXPECT_THAT(resolve().reasons[0], HasSubstr("equally near: 0000:02:00.0 (ens2)"));
}

TEST_F(ResolveNearTest, CountsEntriesThatNameTheirPf) {
  MappedVf named;
  named.name = "named";
  named.pf.netdev = "ens1";
  mapping.vfs.push_back(named);
  add("rail0", "gpu0");
  EXPECT_THAT(pfs(), ElementsAre("netdev ens1", "pci 0000:02:00.0"));
}

TEST_F(ResolveNearTest, LeasedEntryKeepsItsPf) {
  add("rail0", "gpu0");
  add("rail1", "gpu0");
  lease("rail0", "0000:02:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:01:00.0"));
}

TEST_F(ResolveNearTest, RenamedEntryKeepsItsPf) {
  add("blue", "gpu0");
  lease("rail0", "0000:02:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0"));
  leases[0].domain = other;
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:01:00.0"));
}

TEST_F(ResolveNearTest, RenamedEntryKeepsItsPfBesideOthers) {
  add("rail0", "gpu0");
  add("blue", "gpu0");
  add("new", "gpu0");
  lease("rail0", "0000:02:00.0", domain, 0);
  lease("rail1", "0000:02:00.0", domain, 1);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:02:00.0", "pci 0000:01:00.0"));
}

TEST_F(ResolveNearTest, RenamedEntriesKeepTheirVfs) {
  add("blue", "gpu0");
  mapping.vfs[0].index = 0;
  add("red", "gpu0");
  mapping.vfs[1].index = 1;
  lease("rail0", "0000:02:00.0", domain, 0);
  lease("rail1", "0000:01:00.0", domain, 1);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:01:00.0"));
}

// The lease of an entry that names its PF, or has its name, is not that of another entry.
TEST_F(ResolveNearTest, NewEntryTakesNoLeaseOfAnotherEntry) {
  MappedVf named;
  named.name = "named";
  named.pf.netdev = "ens2";
  mapping.vfs.push_back(named);
  add("blue", "gpu0");
  lease("rail0", "0000:02:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("netdev ens2", "pci 0000:01:00.0"));
  mapping.vfs[0].name = "rail0";
  EXPECT_THAT(pfs(), ElementsAre("netdev ens2", "pci 0000:01:00.0"));
  mapping.vfs.clear();
  for (const char* name : {"rail0", "blue"}) {
    add(name, "gpu0");
    mapping.vfs.back().index = 0;
  }
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:01:00.0"));
}

TEST_F(ResolveNearTest, RenamedEntryLeavesPfThatIsNoLongerNear) {
  add("blue", "gpu0");
  lease("rail0", "0000:82:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:01:00.0"));
}

TEST_F(ResolveNearTest, PrefersPfWithFreeVfs) {
  add("rail0", "gpu0");
  for (unsigned index = 0; index < 4; ++index) {
    lease("rail" + std::to_string(index), "0000:01:00.0", other, index);
  }
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0"));
}

TEST_F(ResolveNearTest, RejectsPfOnAnotherNode) {
  add("rail0", "gpu1");
  const auto resolution = resolve();
  ASSERT_TRUE(resolution.faults.contains("rail0"));
  const Objection& fault = resolution.faults.at("rail0");
  EXPECT_EQ(fault.code, ExitCode::badInput);
  EXPECT_THAT(fault.message,
              HasSubstr("train0.yaml:4:5: rail0: `near: gpu1`: no PF is near enough"));
  EXPECT_THAT(fault.message, HasSubstr("0000:01:00.0 (ens1), is at distance SYS"));
  EXPECT_EQ(resolution.mapping.vfs[0].pf.near, "gpu1");
  EXPECT_THAT(resolution.reasons, IsEmpty());
}

TEST_F(ResolveNearTest, RejectsMissingGpuAndHostWithoutPfs) {
  add("rail0", "lost");
  EXPECT_THAT(resolve().faults.at("rail0").message, HasSubstr("no PCI function 0000:99:00.0"));
  mapping.vfs.clear();
  add("rail0", "gpu0");
  kernel.pfs.clear();
  EXPECT_THAT(resolve().faults.at("rail0").message,
              HasSubstr("no NIC with SR-IOV, RDMA and a driver"));
}

// Port 1 of a VPI card is Ethernet, port 2 InfiniBand.
class VpiTest : public ResolveNearTest {
 protected:
  VpiTest() { setLink(1, LinkLayer::infiniband); }
  void setLink(std::size_t pf, LinkLayer link) {
    machine.topology.functions[pf].rdma[0].ports[0].linkLayer = link;
  }
  MappedVf& last() { return mapping.vfs.back(); }
};

TEST_F(VpiTest, EntryTakesPortOfItsLinkType) {
  add("guids", "gpu0");
  last().guidsAutomatic = true;
  add("vlan", "gpu0");
  last().settings.vlan = Vlan{100};
  add("mac", "gpu0");
  last().macAutomatic = false;
  add("teamed", "gpu0");
  last().teamingWith = "net0";
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:01:00.0", "pci 0000:01:00.0",
                                 "pci 0000:01:00.0"));
}

TEST_F(VpiTest, LeasedEntryLeavesAPortOfAnotherType) {
  add("rail0", "gpu0");
  last().nodeGuidAutomatic = true;
  lease("rail0", "0000:01:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0"));
}

TEST_F(VpiTest, SaysThatNoPortHasTheType) {
  setLink(1, LinkLayer::ethernet);
  add("rail0", "gpu0");
  last().guidsAutomatic = true;
  const Objection fault = resolve().faults.at("rail0");
  EXPECT_THAT(fault.message, HasSubstr("this host has no InfiniBand NIC"));
  EXPECT_THAT(fault.remedy, HasSubstr("remove `infiniband:`"));
}

TEST_F(VpiTest, SaysThatPortOfTheTypeIsFar) {
  add("rail0", "gpu1");
  last().guidsAutomatic = true;
  EXPECT_THAT(resolve().faults.at("rail0").message,
              HasSubstr("no InfiniBand PF is near enough: the nearest one, 0000:02:00.0"));
}

TEST_F(VpiTest, EntriesWithoutTypeTakeOneKind) {
  add("rail0", "gpu0");
  add("rail1", "gpu0");
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:01:00.0", "pci 0000:01:00.0"));
  last().guidsAutomatic = true;
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:02:00.0"));
  last().guidsAutomatic = false;
  lease("rail1", "0000:02:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:02:00.0")) << "it keeps its PF";
  lease("rail0", "0000:01:00.0", domain, 0);
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:01:00.0", "pci 0000:02:00.0")) << "both keep theirs";
}

TEST_F(VpiTest, VendorsAreNotMixed) {
  setLink(1, LinkLayer::ethernet);
  machine.topology.functions[1].vendor = 0x14e4;
  add("rail0", "gpu0");
  add("rail1", "gpu0");
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:01:00.0", "pci 0000:01:00.0"));
}

// One GPU at each node; only one kind is near both.
TEST_F(VpiTest, TakesTheKindThatIsNearToAll) {
  static_cast<void>(machine.pf("0000:82:00.0", "mlx5_2", 1));
  kernel.addPf("0000:82:00.0", "ens3", 8, 4);
  machine.topology.functions.back().rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  add("rail0", "gpu0");
  add("rail1", "gpu1");
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:82:00.0"));
}

TEST_F(ResolveNearTest, IgnoresNicWithoutRdma) {
  Device& lower = machine.topology.functions[0];
  lower.rdma.clear();
  lower.vendor = 0x8086;
  lower.driver = "ice";
  add("rail0", "gpu0");
  add("rail1", "gpu0");
  EXPECT_THAT(pfs(), ElementsAre("pci 0000:02:00.0", "pci 0000:02:00.0"));
}

TEST_F(ResolveNearTest, AttachReportsFaultOnce) {
  add("rail0", "gpu1");
  mapping.functions.clear();  // the fake kernel lacks them, which would be another problem
  mapping.functions.push_back({"gpu1", *parsePciAddress("0000:81:00.0"), {}});
  auto resolution = resolve();
  AttachInput input;
  input.domain = domain;
  input.mapping = resolution.mapping;
  input.mapping.functions.clear();
  input.nearFaults = resolution.faults;
  input.inventory = inventory;
  const auto decision = planAttach(input);
  ASSERT_EQ(decision.objections.size(), 1U);
  EXPECT_THAT(decision.objections[0].message, HasSubstr("no PF is near enough"));
}

TEST_F(ResolveNearTest, MappingWithoutNearIsUnchanged) {
  MappedVf named;
  named.name = "rail0";
  named.pf.netdev = "ens1";
  mapping.vfs = {named};
  EXPECT_FALSE(hasNear(mapping));
  EXPECT_THAT(pfs(), ElementsAre("netdev ens1"));
  EXPECT_THAT(resolve().faults, IsEmpty());
}

}  // namespace
}  // namespace vfpass::plan
