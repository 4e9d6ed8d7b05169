#include "guest_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::setup {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const NcclSettings settings{3, 41, 0, 16, 22};

TEST(NcclConf, WritesSettingsFromMapping) {
  EXPECT_THAT(ncclLines(settings, "/etc/vfpass/nccl-topology.xml"),
              ElementsAre("NCCL_IB_GID_INDEX=3", "NCCL_IB_TC=41", "NCCL_IB_SL=0",
                          "NCCL_IB_QPS_PER_CONNECTION=16", "NCCL_IB_TIMEOUT=22",
                          "NCCL_TOPO_FILE=/etc/vfpass/nccl-topology.xml"));
  EXPECT_THAT(ncclLines({}, ""), IsEmpty());
  EXPECT_THAT(ncclLines({{}, {}, 0, {}, {}}, ""), ElementsAre("NCCL_IB_SL=0"));
}

TEST(NcclConf, WritesFurtherVariables) {
  NcclSettings further = settings;
  further.environment = {{"NCCL_SOCKET_IFNAME", "=eth0"}, {"NCCL_DEBUG", "WARN"}};
  EXPECT_THAT(ncclLines(further, "/t.xml"),
              ElementsAre("NCCL_IB_GID_INDEX=3", "NCCL_IB_TC=41", "NCCL_IB_SL=0",
                          "NCCL_IB_QPS_PER_CONNECTION=16", "NCCL_IB_TIMEOUT=22", "NCCL_DEBUG=WARN",
                          "NCCL_SOCKET_IFNAME==eth0", "NCCL_TOPO_FILE=/t.xml"));
}

TEST(NcclConf, LeavesOtherBytesUnchanged) {
  for (const char* text :
       {"", "NCCL_DEBUG=INFO\n", "# mine\r\nNCCL_DEBUG=INFO", "\n\n# vfpass guest-setup: end\n"}) {
    const std::string foreign = text;
    const std::string with = withNcclBlock(foreign, {"NCCL_IB_SL=0"});
    EXPECT_EQ(with.substr(with.size() - foreign.size()), foreign);
    EXPECT_EQ(withNcclBlock(with, {"NCCL_IB_SL=0"}), with);
    EXPECT_EQ(withNcclBlock(with, {}), foreign);
  }
}

TEST(NcclConf, ReplacesBlockAfterItWasMoved) {
  const std::string moved = "A=1\n" + withNcclBlock("B=2\n", {"NCCL_IB_SL=0"});
  EXPECT_EQ(withNcclBlock(moved, {}), "A=1\nB=2\n");
}

// NCCL uses the first value of a key.
TEST(NcclConf, PutsItsLinesFirst) {
  const std::string with = withNcclBlock("NCCL_IB_SL=5\n", {"NCCL_IB_SL=0"});
  EXPECT_LT(with.find("NCCL_IB_SL=0\n"), with.find("NCCL_IB_SL=5\n"));
}

TEST(NcclConf, NamesOverriddenLines) {
  const std::string foreign =
      "NCCL_IB_SL=5\n#NCCL_IB_SL=6\nNCCL_IB_SL=0\nNCCL_DEBUG=INFO\n rubbish\n";
  EXPECT_THAT(overriddenLines(foreign, {"NCCL_IB_SL=0"}), ElementsAre("NCCL_IB_SL=5"));
  EXPECT_THAT(overriddenLines(withNcclBlock(foreign, {"NCCL_IB_SL=0"}), {"NCCL_IB_SL=0"}),
              ElementsAre("NCCL_IB_SL=5"));
}

// A value can contain `=`.
TEST(NcclConf, NamesLinesThatFurtherVariablesOverride) {
  EXPECT_THAT(overriddenLines("NCCL_SOCKET_IFNAME==eth1\nNCCL_DEBUG=WARN\n",
                              {"NCCL_DEBUG=WARN", "NCCL_SOCKET_IFNAME==eth0"}),
              ElementsAre("NCCL_SOCKET_IFNAME==eth1"));
}

}  // namespace
}  // namespace vfpass::setup
