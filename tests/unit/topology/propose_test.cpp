#include "vfpass/topology/propose_mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"
#include "vfpass/error.hpp"

namespace vfpass::topology {
namespace {

using testing::ElementsAre;

// Node 0: a GPU and a PF at one root port, and another GPU; node 1: two GPUs and a PF, each at its
// own root port.
struct Machine : hosts::TopologyBuilder {
  Machine() {
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
  const Machine machine;
  const Proposal proposal = propose(machine.topology, {}, 1, 1);
  EXPECT_THAT(proposal.gpus, ElementsAre(machine.gpu0));
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic0));
  EXPECT_EQ(proposal.vfs[0].distance, Distance::pix);
  EXPECT_EQ(proposal.vfs[0].freeVfs, 16U);
}

TEST(Propose, SkipsLeasedGpus) {
  const Machine machine;
  const Proposal proposal = propose(machine.topology, {machine.lease(machine.gpu0)}, 2, 2);
  EXPECT_THAT(proposal.gpus, ElementsAre(machine.gpu2, machine.gpu3)) << "one node has both";
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic1, machine.nic1));
}

TEST(Propose, SkipsPfWithoutFreeVfs) {
  Machine machine;
  machine.topology.functions[machine.nic0].totalVfs = 1;
  EXPECT_THAT(pfsOf(propose(machine.topology, {machine.lease(machine.nic0)}, 4, 1)),
              ElementsAre(machine.nic1));
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, 4, 5)),
              ElementsAre(machine.nic0, machine.nic1, machine.nic1, machine.nic1, machine.nic1));
}

TEST(Propose, SkipsPfAfterFirmwareError) {
  Machine machine;
  machine.topology.functions[machine.nic0].netdevs.clear();
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, 1, 1)), ElementsAre(machine.nic0));
  machine.topology.functions[machine.nic0].rdma.clear();
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, 4, 1)), ElementsAre(machine.nic1));
}

TEST(Propose, TakesSecondVfFromEquallyNearPf) {
  Machine machine;
  const auto beside = machine.pf("0000:84:00.0", "mlx5_2", 1);
  const Proposal proposal =
      propose(machine.topology, {machine.lease(machine.gpu0), machine.lease(machine.gpu1)}, 1, 3);
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic1, beside, machine.nic1));
  EXPECT_THAT(proposal.vfs[1].alike, ElementsAre(machine.nic1));
}

TEST(Propose, SpreadsVfsWithoutGpus) {
  Machine machine;
  machine.topology.functions[machine.nic0].rdma[0].ports[0].state = "DOWN";
  const Proposal proposal = propose(machine.topology, {}, 0, 2);
  EXPECT_THAT(pfsOf(proposal), ElementsAre(machine.nic1, machine.nic1));
  EXPECT_FALSE(proposal.vfs[0].gpu);
}

TEST(Propose, SkipsNicsWithoutRdma) {
  Machine machine;
  machine.topology.functions[machine.nic0].rdma.clear();
  machine.topology.functions[machine.nic0].vendor = 0x14e4;
  machine.topology.functions[machine.nic0].driver = "bnxt_en";
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, 0, 2)), ElementsAre(machine.nic1, machine.nic1));
  EXPECT_THROW(static_cast<void>(propose(machine.topology, {}, 0, 17)), Error);
}

TEST(Propose, PrefersFasterPfWithoutGpus) {
  Machine machine;
  machine.topology.functions[machine.nic0].rdma[0].ports[0].rate = 100000;
  EXPECT_THAT(pfsOf(propose(machine.topology, {}, 0, 3)),
              ElementsAre(machine.nic1, machine.nic1, machine.nic1));
}

TEST(Propose, ReportsFreeDevicesWhenThereAreTooFew) {
  const Machine machine;
  try {
    static_cast<void>(propose(machine.topology, {machine.lease(machine.gpu0)}, 4, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "4 GPUs requested, but this host has only 3 that are not leased");
  }
  EXPECT_THROW(static_cast<void>(propose(machine.topology, {}, 1, 33)), Error);
}

// The machine's four GPUs on a board with two NVSwitches.
struct SwitchedMachine : Machine {
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
  EXPECT_EQ(propose(machine.topology, {}, 1, 1).nvlink, NvlinkMode::disabled);
  EXPECT_EQ(propose(machine.topology, {}, 2, 1).nvlink, NvlinkMode::partition);
  EXPECT_EQ(propose(machine.topology, {}, 3, 1).nvlink, NvlinkMode::disabled);
  const Proposal whole = propose(machine.topology, {}, 4, 1);
  EXPECT_EQ(whole.nvlink, NvlinkMode::all);
  EXPECT_EQ(whole.nvswitches, machine.switches);
  EXPECT_EQ(propose(Machine().topology, {}, 4, 1).nvlink, std::nullopt);
}

TEST(Propose, SkipsLeasedNvSwitches) {
  SwitchedMachine machine;
  const Lease lease = machine.lease(machine.switches[1]);
  const Proposal proposal = propose(machine.topology, {lease}, 4, 1);
  EXPECT_EQ(proposal.nvlink, NvlinkMode::partition);
  EXPECT_THAT(proposal.nvswitches, testing::IsEmpty());
  machine.topology.functions[machine.switches[0]].driver = "";
  EXPECT_EQ(propose(machine.topology, {lease}, 4, 1).nvlink, NvlinkMode::disabled);
}

}  // namespace
}  // namespace vfpass::topology
