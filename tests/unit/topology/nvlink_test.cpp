#include "vfpass/topology/nvlink_topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::topology {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A board of four GPUs and two NVSwitches, and another GPU in a slot.
class NvlinkTest : public testing::Test {
 protected:
  NvlinkTest() {
    const auto bridge = builder.hostBridge("pci0000:00", 0);
    for (int i = 1; i <= 4; ++i) {
      board.push_back(builder.gpu("0000:0" + std::to_string(i) + ":00.0", bridge));
      function(board.back()).device = 0x2330;
    }
    slot = builder.gpu("0000:05:00.0", bridge);
    function(slot).device = 0x26b9;
    for (int i = 6; i <= 7; ++i) {
      switches.push_back(
          builder.function(FunctionRole::nvswitch, "0000:0" + std::to_string(i) + ":00.0", bridge));
      function(switches.back()).driver = "nvidia-nvswitch";
    }
    mapping.vm = "train0";
  }

  Device& function(std::size_t number) { return builder.topology.functions[number]; }
  void give(const std::vector<std::size_t>& functions) {
    for (const std::size_t number : functions) {
      mapping.functions.push_back(
          {"gpu" + std::to_string(mapping.functions.size()),
           function(number).address,
           {"train0.yaml", static_cast<int>(mapping.functions.size()) + 4, 5}});
    }
  }
  NvlinkJudgement judge() { return judgeNvlink(builder.topology, mapping); }
  NvlinkFault fault() {
    const auto judgement = judge();
    EXPECT_THAT(judgement.faults, SizeIs(1));
    return judgement.faults.empty() ? NvlinkFault{} : judgement.faults[0];
  }

  hosts::TopologyBuilder builder;
  std::vector<std::size_t> board;
  std::vector<std::size_t> switches;
  std::size_t slot = 0;
  Mapping mapping;
};

TEST_F(NvlinkTest, BoardContainsGpusOfOneModel) {
  EXPECT_EQ(nvlinkBoard(builder.topology).gpus, board);
  EXPECT_EQ(nvlinkBoard(builder.topology).switches, switches);
  EXPECT_EQ(describe(nvlinkBoard(builder.topology)), "4 GPUs and 2 NVSwitches");
  for (const std::size_t each : switches) {
    function(each).role = FunctionRole::other;
  }
  EXPECT_THAT(nvlinkBoard(builder.topology).gpus, IsEmpty());
}

TEST_F(NvlinkTest, BlackwellBoardsHaveNoSwitchFunctions) {
  for (const std::size_t each : switches) {
    function(each).role = FunctionRole::other;
  }
  for (const std::size_t each : board) {
    function(each).device = 0x2901;
  }
  give(board);
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("of which this host shows none"));
  mapping.functions.pop_back();
  EXPECT_THAT(fault().message, HasSubstr("3 of the 4 GPUs"));
}

// HGX B200: ConnectX functions of the board instead of NVSwitches.
class NvlinkManagementTest : public NvlinkTest {
 protected:
  NvlinkManagementTest() {
    for (const std::size_t each : switches) {
      function(each).role = FunctionRole::nvlinkManagement;
      function(each).driver = "mlx5_core";
    }
    for (const std::size_t each : board) {
      function(each).device = 0x2901;
    }
  }
};

TEST_F(NvlinkManagementTest, BelongsToTheWholeBoard) {
  mapping.nvlink = NvlinkMode::all;
  EXPECT_EQ(describe(nvlinkBoard(builder.topology)), "4 GPUs and 2 NVLink management functions");
  give(board);
  give({switches[0]});
  const auto found = fault();
  EXPECT_THAT(found.message, HasSubstr("missing in the mapping: 0000:07:00.0"));
  EXPECT_EQ(found.remedy,
            "add under `functions:`:\n  - {name: nvlink-mgmt0, pci: \"0000:07:00.0\"}");
  EXPECT_THAT(found.missing, ElementsAre(function(switches[1]).address));
  give({switches[1]});
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("all 4 GPUs and 2 NVLink management functions of the"));
}

TEST_F(NvlinkManagementTest, ProposesGpusAndFunctionsUnderTheirKeys) {
  mapping.nvlink = NvlinkMode::all;
  give({board[0], board[1], board[2], switches[0]});
  EXPECT_EQ(fault().remedy,
            "add under `gpus:`:\n  - {name: gpu4, pci: \"0000:04:00.0\"}\n"
            "and under `functions:`:\n  - {name: nvlink-mgmt0, pci: \"0000:07:00.0\"}");
}

TEST_F(NvlinkManagementTest, StaysWithTheFabricManagerOutside) {
  mapping.nvlink = NvlinkMode::partition;
  give({board[0], switches[0]});
  EXPECT_THAT(fault().message,
              HasSubstr("gpu1: `nvlink: partition` leaves the NVLink management functions to a "
                        "fabric manager outside the guest, which needs them"));
  mapping.nvlink = NvlinkMode::disabled;
  EXPECT_THAT(fault().message, HasSubstr("`nvlink: disabled` does not use"));
  mapping.functions.erase(mapping.functions.begin());  // no GPU
  EXPECT_THAT(fault().message, HasSubstr("`nvlink: disabled` does not use"));
  mapping.nvlink = NvlinkMode::partition;
  EXPECT_THAT(fault().message, HasSubstr("which needs them"));
  mapping.nvlink.reset();
  EXPECT_THAT(fault().message, HasSubstr("needs all NVLink management functions"));
  give({switches[1]});
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("service VM"));
}

TEST_F(NvlinkManagementTest, PartitionNeedsTheirDriver) {
  mapping.nvlink = NvlinkMode::partition;
  give({board[0]});
  EXPECT_THAT(judge().faults, IsEmpty());
  function(switches[1]).driver = "";
  EXPECT_THAT(fault().message, HasSubstr("some NVLink management functions of the board have no"));
  EXPECT_THAT(fault().remedy, HasSubstr("load mlx5_core and NVIDIA's driver"));
}

TEST_F(NvlinkManagementTest, MarksABoardOfUnknownGpus) {
  for (const std::size_t each : board) {
    function(each).device = 0x29ff;
  }
  give({board[0]});
  EXPECT_THAT(fault().message, HasSubstr("1 of the 4 GPUs"));
}

// DGX-2 and HGX A100 16-GPU: two baseboards, each with 8 GPUs and its NVSwitches, at one socket.
class TwoBaseboardsTest : public testing::Test {
 protected:
  explicit TwoBaseboardsTest() {
    const std::size_t sockets[] = {builder.hostBridge("pci0000:2b", 0),
                                   builder.hostBridge("pci0000:ae", 1)};
    for (int socket = 0; socket < 2; ++socket) {
      for (int i = 0; i < 14; ++i) {
        const std::string address =
            "0000:" + std::string(socket == 0 ? "3" : "b") + "0123456789abcd"[i] + ":00.0";
        const bool gpu = i < 8;
        const auto number =
            gpu ? builder.gpu(address, sockets[socket])
                : builder.function(FunctionRole::nvswitch, address, sockets[socket]);
        builder.topology.functions[number].driver = gpu ? "nvidia" : "nvidia-nvswitch";
        (gpu ? gpus : switches)[socket].push_back(number);
      }
    }
    mapping.vm = "train0";
    mapping.nvlink = NvlinkMode::all;
  }
  void give(const std::vector<std::size_t>& functions) {
    for (const std::size_t number : functions) {
      mapping.functions.push_back({"f" + std::to_string(mapping.functions.size()),
                                   builder.topology.functions[number].address,
                                   {"train0.yaml", 4, 5}});
    }
  }
  NvlinkJudgement judge() { return judgeNvlink(builder.topology, mapping); }

  hosts::TopologyBuilder builder;
  std::vector<std::size_t> gpus[2];
  std::vector<std::size_t> switches[2];
  Mapping mapping;
};

TEST_F(TwoBaseboardsTest, OneIsComplete) {
  ASSERT_THAT(nvlinkBaseboards(builder.topology), SizeIs(2));
  give(gpus[1]);
  give(switches[1]);
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("all 8 GPUs and 6 NVSwitches of one of the two baseb"));
  mapping.functions.pop_back();
  const auto faults = judge().faults;
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0].message, HasSubstr("missing in the mapping: 0000:bd:00.0"));
  EXPECT_THAT(faults[0].remedy, testing::Not(HasSubstr("0000:3")));
}

TEST_F(TwoBaseboardsTest, GpusOfBothNeedBoth) {
  give(gpus[0]);
  give(switches[0]);
  give({gpus[1][0]});
  ASSERT_THAT(judge().faults, SizeIs(1));
  EXPECT_THAT(judge().faults[0].message, HasSubstr("all 16 GPUs and 12 NVSwitches of the board"));
  mapping.functions.back().pci = builder.topology.functions[switches[1][0]].address;
  EXPECT_THAT(judge().faults, SizeIs(1)) << "an NVSwitch of the other one";
}

TEST_F(TwoBaseboardsTest, AreNotGuessed) {
  builder.topology.functions[switches[0][0]].numaNode = 1;
  EXPECT_THAT(nvlinkBaseboards(builder.topology), SizeIs(1));
  for (Device& function : builder.topology.functions) {
    function.numaNode = -1;
  }
  EXPECT_THAT(nvlinkBaseboards(builder.topology), SizeIs(1));
}

// Sub-NUMA clustering: two nodes in each socket.
TEST_F(TwoBaseboardsTest, MayHaveSeveralNodesEach) {
  builder.topology.functions[gpus[0][0]].numaNode = 2;
  builder.topology.functions[gpus[1][0]].numaNode = 3;
  EXPECT_THAT(nvlinkBaseboards(builder.topology), SizeIs(2));
}

TEST_F(NvlinkTest, GpusOutsideBoardNeedNoSetting) {
  give({slot});
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_EQ(judge().summary, "");
  mapping.nvlink = NvlinkMode::partition;
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("`nvlink: partition` is not needed"));
}

TEST_F(NvlinkTest, PartOfBoardRequiresNvlinkSetting) {
  give({board[0], board[1]});
  const auto found = fault();
  EXPECT_EQ(toString(found.place), "train0.yaml:4:5");
  EXPECT_THAT(found.message,
              AllOf(HasSubstr("gpu0: the mapping has 2 of the 4 GPUs"), HasSubstr("error 802")));
  EXPECT_THAT(found.remedy,
              AllOf(HasSubstr("\n  nvlink: disabled"), HasSubstr("\n  nvlink: partition"),
                    HasSubstr("\n  nvlink: all")));
}

TEST_F(NvlinkTest, WholeBoardNeedsNoSetting) {
  give(board);
  give(switches);
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("all 4 GPUs and 2 NVSwitches"));
}

TEST_F(NvlinkTest, AllRequiresWholeBoard) {
  mapping.nvlink = NvlinkMode::all;
  give({board[0], board[1], board[2], switches[0]});
  const auto found = fault();
  EXPECT_THAT(found.message, HasSubstr("missing in the mapping: 0000:04:00.0, 0000:07:00.0"));
  EXPECT_EQ(found.remedy,
            "add under `gpus:`:\n  - {name: gpu4, pci: \"0000:04:00.0\"}\n"
            "  - {name: nvswitch0, pci: \"0000:07:00.0\"}");
}

TEST_F(NvlinkTest, PartitionRequiresValidSizeAndFabricManager) {
  mapping.nvlink = NvlinkMode::partition;
  give({board[0], board[1]});
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("a partition of 2 of the 4 GPUs"));
  give({board[2]});
  EXPECT_THAT(fault().message, HasSubstr("a partition cannot have 3 GPUs"));
  mapping.functions.pop_back();
  function(switches[1]).driver = "vfio-pci";  // a service VM
  EXPECT_THAT(judge().faults, IsEmpty());
  function(switches[1]).driver = "";
  EXPECT_THAT(fault().message, HasSubstr("have no driver"));
  function(switches[1]).driver = "nvidia-nvswitch";
  give({switches[0]});
  EXPECT_THAT(fault().message, HasSubstr("lists some of them"));
}

TEST_F(NvlinkTest, DisabledAcceptsAnyGpusAndRefusesSwitches) {
  mapping.nvlink = NvlinkMode::disabled;
  give({board[0], board[1], board[2], slot});
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("3 of the 4 GPUs"));
  give({switches[1]});
  EXPECT_THAT(fault().message, HasSubstr("gpu4: `nvlink: disabled` does not use"));
}

TEST_F(NvlinkTest, SwitchesWithoutGpusAreServiceVm) {
  give({switches[1]});
  EXPECT_THAT(fault().remedy, HasSubstr("pci: \"0000:06:00.0\""));
  give({switches[0]});
  EXPECT_THAT(judge().faults, IsEmpty());
  EXPECT_THAT(judge().summary, HasSubstr("service VM"));
}

TEST_F(NvlinkTest, ProposedEntriesHaveUnusedNames) {
  mapping.nvlink = NvlinkMode::all;
  give({board[0], board[1], board[2], board[3], switches[0]});
  MappedVf vf;
  vf.name = "nvswitch0";
  mapping.vfs = {vf};
  EXPECT_THAT(fault().remedy, HasSubstr("{name: nvswitch1, pci: \"0000:07:00.0\"}"));
}

TEST_F(NvlinkTest, NamesTheGpusOfAPartition) {
  give({board[0], board[1], slot});
  mapping.functions[1].nvlinkModule = 7;
  mapping.nvlink = NvlinkMode::disabled;
  EXPECT_THAT(judge().partition, IsEmpty());
  mapping.nvlink = NvlinkMode::partition;
  const auto gpus = judge().partition;
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].address, function(board[0]).address);
  EXPECT_EQ(gpus[0].module, std::nullopt);
  EXPECT_EQ(gpus[1].module, 7U);
}

}  // namespace
}  // namespace vfpass::topology
