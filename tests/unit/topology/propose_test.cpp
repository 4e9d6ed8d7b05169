#include "vfpass/topology/propose_mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "hosts/topology_builder.hpp"
#include "vfpass/error.hpp"

namespace vfpass::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Node 0: a GPU and a PF at one root port, and another GPU; node 1: two GPUs and a PF, each at its
// own root port.
struct TwoNodeMachine : hosts::TopologyBuilder {
  TwoNodeMachine() {
    const auto one = hostBridge("pci0000:00", 0);
    const auto two = hostBridge("pci0000:80", 1);
    const auto port = function(FunctionRole::rootPort, "0000:00:01.0", one);
    gpu0 = gpu("0000:01:00.0", one, port);
    nic0 = pf("0000:01:00.1", "mlx5_0", one, port);
    gpu1 = gpu("0000:02:00.0", one);
    gpu2 = gpu("0000:81:00.0", two);
    gpu3 = gpu("0000:82:00.0", two);
    nic1 = pf("0000:83:00.0", "mlx5_1", two);
  }
  std::size_t gpu0, nic0, gpu1, gpu2, gpu3, nic1;

  [[nodiscard]] Lease lease(std::size_t function, unsigned index = 0) const {
    Lease lease;
    lease.pf = lease.device = topology.functions[function].address;
    vfOf(lease).index = index;
    return lease;
  }
};

std::vector<std::size_t> pfsOf(const Proposal& proposal) {
  std::vector<std::size_t> pfs;
  for (const auto& vf : proposal.vfs) {
    pfs.push_back(vf.pf);
  }
  return pfs;
}

TEST(Propose, PrefersNearestPair) {
  const TwoNodeMachine machine;
  const Proposal proposal = propose(machine.topology, {}, {1, 1});
  EXPECT_THAT(proposal.gpus, ElementsAre(machine.gpu0));
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic0));
  EXPECT_EQ(proposal.vfs[0].distance, Distance::pix);
  EXPECT_EQ(proposal.vfs[0].freeVfs, 16U);
}

TEST(Propose, SkipsLeasedGpus) {
  const TwoNodeMachine machine;
  const Proposal proposal = propose(machine.topology, {machine.lease(machine.gpu0)}, {2, 2});
  EXPECT_THAT(proposal.gpus, ElementsAre(machine.gpu2, machine.gpu3)) << "one node has both";
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic1, machine.nic1));
}

TEST(Propose, SkipsGpusInQuarantine) {
  const TwoNodeMachine machine;
  const PciAddress unfit = machine.topology.functions[machine.gpu0].address;
  const Proposal proposal = propose(machine.topology, {}, {2, 2, false, {unfit}});
  EXPECT_THAT(proposal.gpus, ElementsAre(machine.gpu2, machine.gpu3)) << "one node has both";
}

TEST(Propose, SkipsVfsOfPfInQuarantine) {
  const TwoNodeMachine machine;
  const PciAddress unfit = machine.topology.functions[machine.nic0].address;
  for (const std::size_t pf : pfsOf(propose(machine.topology, {}, {1, 1, false, {unfit}}))) {
    EXPECT_NE(pf, machine.nic0);
  }
}

TEST(Propose, SkipsPfWithoutFreeVfs) {
  TwoNodeMachine machine;
  machine.topology.functions[machine.nic0].totalVfs = 1;
  EXPECT_THAT(pfsOf(propose(machine.topology, {machine.lease(machine.nic0)}, {4, 1})),
              ElementsAre(machine.nic1));
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {4, 5})),
              ElementsAre(machine.nic0, machine.nic1, machine.nic1, machine.nic1, machine.nic1));
}

TEST(Propose, SkipsPfAfterFirmwareError) {
  TwoNodeMachine machine;
  Device& pf = machine.topology.functions[machine.nic0];
  pf.netdevs.clear();
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {4, 1})), ElementsAre(machine.nic1))
      << "attach needs the netdev of an Ethernet PF";
  pf.rdma.clear();
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {4, 1})), ElementsAre(machine.nic1));
}

TEST(Propose, SkipsPfWithoutDriver) {
  TwoNodeMachine machine;
  machine.topology.functions[machine.nic0].driver = "";
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {4, 1})), ElementsAre(machine.nic1));
}

std::string refusal(const Topology& topology, const Wanted& wanted) {
  try {
    static_cast<void>(propose(topology, {}, wanted));
  } catch (const Error& error) {
    return std::string(error.what()) + "; " + error.remedy();
  }
  return {};
}

TEST(Propose, SaysThatTheHostHasNoGpu) {
  hosts::TopologyBuilder machine;
  static_cast<void>(machine.pf("0000:01:00.0", "mlx5_0", machine.hostBridge("pci0000:00", 0)));
  EXPECT_EQ(refusal(machine.topology, {1, 1}),
            "this host has no GPU; propose VFs alone: `--gpus 0 --vfs NUMBER`");
  EXPECT_EQ(refusal(machine.topology, {0, 1}), "");
}

TEST(Propose, SaysWhyNoPfCanHaveVfs) {
  TwoNodeMachine machine;
  machine.topology.functions[machine.nic0].totalVfs = 0;
  machine.topology.functions[machine.nic1].netdevs.clear();
  machine.topology.functions[machine.nic1].rdma.clear();
  EXPECT_EQ(
      refusal(machine.topology, {1, 1}),
      "no PF of this host can have VFs: 0000:01:00.1 shows no SR-IOV capability, 0000:83:00.0 "
      "has neither netdev nor RDMA device; run `vfpass doctor`: its checks sriov-firmware and "
      "pf-netdev name the cause");
  EXPECT_EQ(refusal(machine.topology, {1, 0}), "") << "GPUs alone";
}

// Ports of one VPI card at one GPU: Ethernet and InfiniBand.
struct MixedMachine : hosts::TopologyBuilder {
  MixedMachine() {
    const auto bridge = hostBridge("pci0000:00", 0);
    gpu0 = gpu("0000:01:00.0", bridge);
    ethernet = pf("0000:02:00.0", "mlx5_0", bridge);
    infiniband = pf("0000:02:00.1", "mlx5_1", bridge);
    topology.functions[infiniband].rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
    for (const std::size_t each : {ethernet, infiniband}) {
      topology.functions[each].totalVfs = 4;
    }
  }
  std::size_t gpu0, ethernet, infiniband;
};

TEST(Propose, MixesNoLinkTypes) {
  const MixedMachine machine;
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {1, 3})),
              ElementsAre(machine.ethernet, machine.ethernet, machine.ethernet));
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {1, 3, true})),
              ElementsAre(machine.infiniband, machine.infiniband, machine.infiniband));
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {0, 2, true})),
              ElementsAre(machine.infiniband, machine.infiniband));
  EXPECT_THAT(refusal(machine.topology, {1, 5}),
              HasSubstr("5 VFs requested, but no vendor and link type has that many free: 4 of "
                        "ethernet PFs 0000:02:00.0; 4 of infiniband PFs 0000:02:00.1"));
  EXPECT_THAT(refusal(machine.topology, {1, 5, true}), HasSubstr("only 4 free"));
}

TEST(Propose, SaysThatThereIsNoInfiniband) {
  const TwoNodeMachine machine;
  EXPECT_THAT(refusal(machine.topology, {1, 1, true}),
              HasSubstr("1 VF of InfiniBand NICs requested, but this host has no InfiniBand PF"));
}

TEST(Propose, MixesNoVendors) {
  MixedMachine machine;
  Device& other = machine.topology.functions[machine.infiniband];
  other.rdma[0].ports[0].linkLayer = LinkLayer::ethernet;
  other.vendor = 0x14e4;
  other.driver = "bnxt_en";
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {1, 3})),
              ElementsAre(machine.ethernet, machine.ethernet, machine.ethernet));
}

// The kind that serves all GPUs from near, although the other one is first at one of them.
TEST(Propose, TakesTheKindThatIsNearAsAWhole) {
  TwoNodeMachine machine;
  const auto far = machine.pf("0000:01:00.2", "ib0", 0, machine.topology.functions[1].parent);
  machine.topology.functions[far].rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  machine.topology.functions[machine.nic0].totalVfs = 0;
  const auto pfs = pfsOf(propose(machine.topology, {}, {4, 4}));
  EXPECT_EQ(std::set(pfs.begin(), pfs.end()).size(), 1U);
}

TEST(Propose, TakesSecondVfFromEquallyNearPf) {
  TwoNodeMachine machine;
  const auto beside = machine.pf("0000:84:00.0", "mlx5_2", 1);
  const Proposal proposal =
      propose(machine.topology, {machine.lease(machine.gpu0), machine.lease(machine.gpu1)}, {1, 3});
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic1, beside, machine.nic1));
  EXPECT_THAT(proposal.vfs[1].alike, ElementsAre(machine.nic1));
}

TEST(Propose, SpreadsVfsWithoutGpus) {
  TwoNodeMachine machine;
  machine.topology.functions[machine.nic0].rdma[0].ports[0].state = "DOWN";
  const Proposal proposal = propose(machine.topology, {}, {0, 2});
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic1, machine.nic1));
  EXPECT_FALSE(proposal.vfs[0].gpu);
}

TEST(Propose, SkipsNicsWithoutRdma) {
  TwoNodeMachine machine;
  machine.topology.functions[machine.nic0].rdma.clear();
  machine.topology.functions[machine.nic0].vendor = 0x14e4;
  machine.topology.functions[machine.nic0].driver = "bnxt_en";
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {0, 2})),
              ElementsAre(machine.nic1, machine.nic1));
  EXPECT_THROW(static_cast<void>(propose(machine.topology, {}, {0, 17})), Error);
}

TEST(Propose, PrefersFasterPfWithoutGpus) {
  TwoNodeMachine machine;
  machine.topology.functions[machine.nic0].rdma[0].ports[0].rate = 100000;
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, {0, 3})),
              ElementsAre(machine.nic1, machine.nic1, machine.nic1));
}

TEST(Propose, ReportsFreeDevicesWhenThereAreTooFew) {
  const TwoNodeMachine machine;
  try {
    static_cast<void>(propose(machine.topology, {machine.lease(machine.gpu0)}, {4, 1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "4 GPUs requested, but this host has only 3 that are not leased");
  }
  EXPECT_THROW(static_cast<void>(propose(machine.topology, {}, {1, 33})), Error);
}

// The machine's four GPUs on a board with two NVSwitches.
struct SwitchedMachine : TwoNodeMachine {
  SwitchedMachine() {
    for (const char* address : {"0000:84:00.0", "0000:85:00.0"}) {
      switches.push_back(function(FunctionRole::nvswitch, address, 1));
      topology.functions[switches.back()].driver = "nvidia-nvswitch";
    }
  }
  std::vector<std::size_t> switches;
};

TEST(Propose, ChoosesNvlinkModeForGpusOfNvSwitchBoard) {
  SwitchedMachine machine;
  EXPECT_EQ(propose(machine.topology, {}, {1, 1}).nvlink, NvlinkMode::disabled);
  EXPECT_EQ(propose(machine.topology, {}, {2, 1}).nvlink, NvlinkMode::partition);
  EXPECT_EQ(propose(machine.topology, {}, {3, 1}).nvlink, NvlinkMode::disabled);
  const Proposal whole = propose(machine.topology, {}, {4, 1});
  EXPECT_EQ(whole.nvlink, NvlinkMode::all);
  EXPECT_EQ(whole.nvswitches, machine.switches);
  EXPECT_EQ(propose(TwoNodeMachine().topology, {}, {4, 1}).nvlink, std::nullopt);
}

// The nearest pair is not one of the fabric manager's partitions.
TEST(Propose, PrefersGpusOfAPartition) {
  const SwitchedMachine machine;
  const auto at = [&](std::size_t gpu) {
    return std::optional(machine.topology.functions[gpu].address);
  };
  const Wanted wanted{2, 2};
  const Proposal nearest = propose(machine.topology, {}, wanted);
  std::vector<FabricPartition> partitions{
      {3, false, {{1, at(machine.gpu0)}, {3, at(machine.gpu2)}}},
      {4, false, {{2, at(machine.gpu1)}, {4, at(machine.gpu3)}}}};
  const auto gpusOf = [&](const std::vector<Lease>& leases) {
    return proposePartition(machine.topology, leases, wanted, partitions, nearest).gpus;
  };
  EXPECT_THAT(gpusOf({}), testing::UnorderedElementsAre(machine.gpu0, machine.gpu2));
  EXPECT_THAT(gpusOf({machine.lease(machine.gpu2)}),
              testing::UnorderedElementsAre(machine.gpu1, machine.gpu3));
  partitions[0].active = true;
  EXPECT_THAT(gpusOf({}), testing::UnorderedElementsAre(machine.gpu1, machine.gpu3));
  partitions[0].active = false;
  partitions.push_back({1, true, {{2, at(machine.gpu1)}, {5, {}}}});
  EXPECT_THAT(gpusOf({machine.lease(machine.gpu2)}),
              testing::UnorderedElementsAre(machine.gpu1, machine.gpu3))
      << "one that exists comes before none";
  EXPECT_THAT(gpusOf({}), testing::UnorderedElementsAre(machine.gpu0, machine.gpu2));
  partitions.pop_back();
  partitions[0].active = true;
  partitions[1].gpus[0].address = std::nullopt;
  EXPECT_EQ(gpusOf({}), nearest.gpus);
  EXPECT_THAT(partitionedGpus(machine.topology, nearest), testing::SizeIs(2));
}

TEST(Propose, GivesNvlinkManagementWithTheWholeBoard) {
  SwitchedMachine machine;
  for (const std::size_t each : machine.switches) {
    machine.topology.functions[each].role = FunctionRole::nvlinkManagement;
  }
  const Proposal whole = propose(machine.topology, {}, {4, 1});
  EXPECT_EQ(whole.nvlink, NvlinkMode::all);
  EXPECT_EQ(whole.nvlinkManagers, machine.switches);
  EXPECT_EQ(propose(machine.topology, {}, {2, 1}).nvlink, NvlinkMode::partition);
}

// DGX-2: 8 GPUs are those of one of the two baseboards.
TEST(Propose, GivesOneBaseboardOfTwo) {
  hosts::TopologyBuilder machine;
  std::vector<std::size_t> switches[2];
  for (int socket = 0; socket < 2; ++socket) {
    const auto bridge = machine.hostBridge("pci" + std::to_string(socket), socket);
    for (int i = 0; i < 10; ++i) {
      const std::string address = "0000:" + std::to_string(10 * (socket + 1) + i) + ":00.0";
      if (i < 8) {
        static_cast<void>(machine.gpu(address, bridge));
      } else {
        switches[socket].push_back(machine.function(FunctionRole::nvswitch, address, bridge));
        machine.topology.functions.back().driver = "nvidia-nvswitch";
      }
    }
  }
  const Proposal proposal = propose(machine.topology, {}, {8, 0});
  EXPECT_EQ(proposal.nvlink, NvlinkMode::all);
  EXPECT_EQ(proposal.nvswitches, switches[0]);
  EXPECT_EQ(propose(machine.topology, {}, {16, 0}).nvswitches.size(), 4U);
  machine.topology.functions[switches[0][0]].role = FunctionRole::other;  // not identified
  EXPECT_EQ(propose(machine.topology, {}, {8, 0}).nvlink, NvlinkMode::partition);
}

TEST(Propose, NamesNumbersOfGpusThatKeepNvlink) {
  SwitchedMachine machine;
  const auto sizes = [&](std::size_t gpus) {
    return nvlinkPartitionsNear(machine.topology, propose(machine.topology, {}, {gpus, 1}));
  };
  EXPECT_THAT(sizes(3), ElementsAre(2, 4));
  EXPECT_THAT(sizes(2), testing::IsEmpty());
  EXPECT_THAT(sizes(1), testing::IsEmpty());
  machine.topology.functions[machine.switches[0]].driver = "";
  EXPECT_THAT(sizes(3), testing::IsEmpty()) << "no fabric manager on the host";
}

TEST(Propose, SkipsLeasedNvSwitches) {
  SwitchedMachine machine;
  const Lease lease = machine.lease(machine.switches[1]);
  const Proposal proposal = propose(machine.topology, {lease}, {4, 1});
  EXPECT_EQ(proposal.nvlink, NvlinkMode::partition);
  EXPECT_THAT(proposal.nvswitches, testing::IsEmpty());
  machine.topology.functions[machine.switches[0]].driver = "";
  EXPECT_EQ(propose(machine.topology, {lease}, {4, 1}).nvlink, NvlinkMode::disabled);
}

}  // namespace
}  // namespace vfpass::topology
