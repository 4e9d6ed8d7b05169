#include "nccl/nccl_log.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace vfpass::probe {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Lines of NCCL 2.28, as src/transport/net.cc and src/transport/net_ib/init.cc write them.
constexpr const char* twoRails =
    "g1:31:31 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n"
    "g1:31:35 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB "
    "eth0:10.0.0.1<0>\n"
    "g1:31:35 [0] NCCL INFO Using network IB\n"
    "g1:31:35 [0] NCCL INFO Channel 00/02 :    0   1   2   3\n"
    "g1:31:35 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/1/GDRDMA\n"
    "g1:31:35 [0] NCCL INFO Channel 01/0 : 1[1] -> 2[0] [send] via NET/IB/1/GDRDMA\n"
    "g1:31:35 [0] NCCL INFO Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0\n"
    "g1:31:35 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n";

TEST(NcclLog, DevicesNetworkAndBootstrapAreRead) {
  const NcclChoice choice = readNcclLog(twoRails);

  EXPECT_EQ(choice.network, "IB");
  EXPECT_EQ(choice.bootstrap, "eth0:10.0.0.1");
  ASSERT_THAT(choice.devices, SizeIs(2));
  EXPECT_EQ(choice.devices[1].number, 1U);
  EXPECT_EQ(choice.devices[1].name, "mlx5_1");
  EXPECT_EQ(choice.devices[1].layer, "RoCE");
}

TEST(NcclLog, ChannelsOfOneConnectionAreCounted) {
  const NcclChoice choice = readNcclLog(twoRails);

  EXPECT_THAT(
      choice.connections,
      testing::ElementsAre(NcclChoice::Connection{1, 2, "send", "NET/IB", 1, true, 2},
                           NcclChoice::Connection{3, 0, "receive", "NET/IB", 0, false, 1},
                           NcclChoice::Connection{0, 1, "", "P2P/CUMEM/read", -1, false, 1}));
}

TEST(NcclLog, OlderLinesWithBusAddressesAndProxyAreRead) {
  const NcclChoice choice = readNcclLog(
      "h:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:192.168.1.2<0>\n"
      "h:1:2 [0] NCCL INFO Channel 00/0 : 0[f000] -> 8[f000] [send] via NET/Socket/0\n"
      "h:1:2 [0] NCCL INFO Channel 03/0 : 0[0] -> 9[1] [send] via "
      "NET/IB/2(3)/GDRDMA(PCI)/Shared\n");

  ASSERT_THAT(choice.devices, SizeIs(1));
  EXPECT_EQ(choice.devices[0].name, "eth0");
  EXPECT_EQ(choice.devices[0].layer, "");
  EXPECT_THAT(choice.connections,
              testing::ElementsAre(NcclChoice::Connection{0, 8, "send", "NET/Socket", 0, false, 1},
                                   NcclChoice::Connection{0, 9, "send", "NET/IB", 2, true, 1, 3}));
}

TEST(NcclLog, NetworkOfNewerVersionsIsRead) {
  EXPECT_EQ(readNcclLog("h [0] NCCL INFO Assigned NET plugin IB to comm\n").network, "IB");
}

TEST(NcclLog, PluginWhoseNameHasBlanksIsReadWhole) {
  const NcclChoice choice = readNcclLog(
      "h:1:2 [0] NCCL INFO Using network AWS Libfabric\n"
      "h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/NCCL RDMA Plugin v10/0\n"
      "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/2/GDRDMA\n");

  EXPECT_EQ(choice.network, "AWS Libfabric");
  EXPECT_THAT(choice.connections,
              testing::ElementsAre(
                  NcclChoice::Connection{1, 0, "receive", "NET/NCCL RDMA Plugin v10", 0, false, 1},
                  NcclChoice::Connection{0, 1, "send", "NET/AWS Libfabric", 2, true, 1}));
}

TEST(NcclLog, PortsUsedAsOneDeviceAreNamedInEveryVersion) {
  const NcclChoice old = readNcclLog(
      "h [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [2]mlx5_2:1/IB "
      "[RO]; OOB eth0:10.0.0.1<0>\n");
  ASSERT_THAT(old.devices, SizeIs(2));
  EXPECT_EQ(old.devices[0].name, "mlx5_0+mlx5_1");
  EXPECT_EQ(old.devices[0].layer, "RoCE");
  EXPECT_EQ(old.devices[1].number, 2U);
  EXPECT_EQ(old.devices[1].name, "mlx5_2");

  const NcclChoice now = readNcclLog(
      "h [0] NCCL INFO NET/IB : Made virtual device [0] name=mlx5_0 speed=200000 ndevs=1\n"
      "h [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE; OOB eth0:10.0.0.1<0>\n"
      "h [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=400000 ndevs=2\n");
  ASSERT_THAT(now.devices, SizeIs(3)) << "no number twice";
  EXPECT_EQ(now.devices[2].number, 2U);
  EXPECT_EQ(now.devices[2].name, "mlx5_0+mlx5_1");
}

TEST(NcclLog, LayerIsReadWithTheSharpPlugin) {
  const NcclChoice choice = readNcclLog("h NCCL INFO NET/IB : Using [0]mlx5_0:1/IB/SHARP [RO]\n");
  ASSERT_THAT(choice.devices, SizeIs(1));
  EXPECT_EQ(choice.devices[0].layer, "IB");
}

TEST(NcclLog, LineThatWasCutDoesNotDenyGpuDirect) {
  const std::string line = "h NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0";
  EXPECT_THAT(readNcclLog(line).connections, IsEmpty());
  EXPECT_THAT(readNcclLog(line + "\n" + line).connections, SizeIs(1));
}

TEST(NcclLog, HostileLogIsBounded) {
  std::string log;
  for (int i = 0; i < 600; ++i) {
    const std::string number = std::to_string(i);
    log += "NCCL INFO Channel 00/0 : " + number + "[0] -> 1[0] via " + std::string(500, 'x') + "\n";
    log += "NCCL WARN " + std::string(5000, 'w') + "\n";
    log += "NCCL INFO NET/IB : Using [" + number + "]" + std::string(500, 'd') + "\n";
  }

  const NcclChoice choice = readNcclLog(log);

  EXPECT_THAT(choice.connections, SizeIs(512));
  EXPECT_THAT(choice.warnings, SizeIs(8));
  EXPECT_THAT(choice.devices, SizeIs(64));
  EXPECT_EQ(choice.leftOut, 1800U - 512 - 8 - 64);
  EXPECT_LE(choice.connections[0].transport.size(), 64U);
  EXPECT_LE(choice.warnings[0].size(), 256U);
  EXPECT_LE(choice.devices[0].name.size(), 64U);
}

TEST(NcclLog, TruncatedLinesAreIgnored) {
  for (const char* rest :
       {"", "0[0", "0[0]", "0[0] -> ", "0[0] -> 1", "0[0] -> 1[1]", "x[0] -> 1[1] via SHM",
        "999999[0] -> 1[1] via SHM", "0[0] -> 1[1] [send] v"}) {
    const NcclChoice choice = readNcclLog(std::string("NCCL INFO Channel 00/0 : ") + rest + "\n");
    EXPECT_THAT(choice.connections, IsEmpty()) << rest;
  }
  EXPECT_THAT(readNcclLog("NCCL INFO NET/IB : Using [\n").devices, IsEmpty());
  for (const char* proxy : {"(", "()", "(x)", "(999999)"}) {
    const std::string line = "NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0";
    EXPECT_EQ(readNcclLog(line + proxy + "\n").connections.at(0).proxy, -1) << proxy;
  }
}

TEST(NcclLog, FileOfTheProcessIsReadBack) {
  const NcclLog log;

  std::FILE* file = std::fopen(std::getenv("NCCL_DEBUG_FILE"), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("NCCL INFO Using network Socket\n", file);
  std::fclose(file);

  EXPECT_EQ(log.text(), "NCCL INFO Using network Socket\n");
}

}  // namespace
}  // namespace vfpass::probe
