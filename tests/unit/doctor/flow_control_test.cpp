#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Flow : public testing::Test, public DoctoredHost {
 protected:
  void dcb(const std::string& netdev, const std::string& text) const {
    file("vfpass/dcb/" + netdev, text + "\n");
  }
  void ecn(const std::string& side, const std::string& value) {
    file(pf, "net/net-mlx5_0/ecn/" + side + "/enable/3", value + "\n");
  }
};

TEST_F(Flow, PassesWithPfcOnOnePriority) {
  EXPECT_EQ(finding("flow-control").seen, "PFC unknown, ECN unknown");
  EXPECT_EQ(outcome("flow-control"), Outcome::notObservable);
  dcb("net-mlx5_0", "8 1");
  EXPECT_EQ(finding("flow-control").seen, "PFC on priority 3, ECN unknown, DSCP trusted");
  EXPECT_EQ(outcome("flow-control"), Outcome::passed);
}

TEST_F(Flow, PassesWithEcnOnly) {
  dcb("net-mlx5_0", "0 0");
  EXPECT_EQ(outcome("flow-control"), Outcome::notObservable);
  ecn("roce_np", "1");
  ecn("roce_rp", "0");
  EXPECT_EQ(outcome("flow-control"), Outcome::failed);
  EXPECT_THAT(finding("flow-control").remedy, testing::StartsWith("mlnx_qos -i net-mlx5_0"));
  ecn("roce_rp", "1");
  EXPECT_EQ(outcome("flow-control"), Outcome::passed);
}

TEST_F(Flow, ReportsPortsWithDifferentPfc) {
  const auto second = builder.pf("0000:03:00.1", "mlx5_1", 0, nicPort);
  function(second).path = "second";
  require({});
  requirements.vfs.push_back(requirements.vfs[0]);
  requirements.vfs[1].pf = function(second).address;
  dcb("net-mlx5_0", "8 0");
  dcb("net-mlx5_1", "8 0");
  EXPECT_EQ(outcome("flow-control"), Outcome::passed);
  dcb("net-mlx5_1", "16 0");
  EXPECT_EQ(finding("flow-control").subject, "net-mlx5_1");
  EXPECT_EQ(outcome("flow-control"), Outcome::failed);
}

TEST_F(Flow, IgnoresMalformedAnswer) {
  for (const char* text : {"", "256 0", "8", "8 2", "x 1", "8 1 1"}) {
    dcb("net-mlx5_0", text);
    EXPECT_EQ(outcome("flow-control"), Outcome::notObservable) << text;
  }
}

TEST_F(Flow, IsWaivedForInfiniband) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(outcome("flow-control"), Outcome::waived);
}

}  // namespace
}  // namespace vfpass::doctor
