#include <gtest/gtest.h>

#include "vfpass/metrics/metrics.hpp"

namespace vfpass::metrics {
namespace {

class DeviceLinksTest : public testing::Test {
 protected:
  DeviceLinksTest() {
    topology.functions.resize(3);
    topology.functions[0].role = FunctionRole::rootPort;
    topology.functions[0].best = {16000, 16};
    for (std::size_t number : {1, 2}) {
      Device& device = topology.functions[number];
      device.address = *parsePciAddress("0000:0" + std::to_string(number) + ":00.0");
      device.parent = 0;
      device.best = {32000, 16};
      device.link = {16000, 16};
    }
    topology.functions[1].role = FunctionRole::nic;
    topology.functions[2].role = FunctionRole::gpu;
  }

  [[nodiscard]] double share(std::size_t number) const {
    const auto links = linksOf(topology, {topology.functions[number].address});
    return links.size() == 1 ? links[0].share : -1;
  }

  Topology topology;
};

TEST_F(DeviceLinksTest, ComparesWithWhatDeviceAndPortCanDo) {
  EXPECT_EQ(share(1), 1) << "a faster card in a slower slot is not degraded";
  topology.functions[1].link = {8000, 8};
  EXPECT_EQ(share(1), 0.25);
  topology.functions[0].best = {};
  EXPECT_EQ(share(1), 0.125) << "the port is not observable";
}

TEST_F(DeviceLinksTest, IdleGpuMaySlowItsLinkDown) {
  topology.functions[2].link.speed = 2500;
  EXPECT_EQ(share(2), 1);
  topology.functions[2].link.width = 8;
  EXPECT_EQ(share(2), 0.5);
}

TEST_F(DeviceLinksTest, LeavesOutWhatIsNotObservable) {
  topology.functions[1].link = {};
  EXPECT_EQ(share(1), -1);
  EXPECT_TRUE(linksOf(topology, {}).empty());
}

}  // namespace
}  // namespace vfpass::metrics
