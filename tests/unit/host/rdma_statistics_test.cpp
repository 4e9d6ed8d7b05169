#include "vfpass/host/device_statistics.hpp"

#include <gtest/gtest.h>

namespace vfpass::host {
namespace {

// What the switch's port receives, the VF has sent.
TEST(RdmaStatisticsTest, PortOfTheSwitchReceivesWhatTheVfSends) {
  const auto bytes = rdmaBytesIn({{"rx_vport_rdma_unicast_bytes", 70},
                                  {"tx_vport_rdma_unicast_bytes", 50},
                                  {"vport_rx_bytes", 9000}});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->sent, 70U);
  EXPECT_EQ(bytes->received, 50U);
}

TEST(RdmaStatisticsTest, DriverThatCountsAllTogetherHasNone) {
  EXPECT_FALSE(rdmaBytesIn({{"vport_rx_bytes", 9000}, {"vport_tx_bytes", 9000}}));
  EXPECT_FALSE(rdmaBytesIn({{"rx_vport_rdma_unicast_bytes", 70}}));
}

TEST(RdmaStatisticsTest, NetdevWithoutStatisticsOrNoNetdevHasNone) {
  EXPECT_FALSE(readRdmaBytes("lo"));
  EXPECT_FALSE(readRdmaBytes(""));
  EXPECT_FALSE(readRdmaBytes("no-netdev-has-a-name-as-long-as-this"));
}

}  // namespace
}  // namespace vfpass::host
