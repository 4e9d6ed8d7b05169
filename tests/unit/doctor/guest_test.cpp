#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Guest : public testing::Test, public DoctoredHost {
 protected:
  void peers(std::optional<bool> possible) {
    PeerMapping mapping;
    mapping.possible = possible;
    mapping.reason = "a reason";
    mapping.remedy = possible.value_or(false) ? "" : "a remedy";
    requirements.peers = mapping;
  }
  void topologyFile(Outcome outcome) {
    requirements.ncclTopology = Finding{"nccl-topology", "", outcome, "a file", "seen", "a remedy"};
  }
};

TEST_F(Guest, ReportsWhetherBarsAreMapped) {
  EXPECT_EQ(outcome("peer-mapping"), Outcome::waived);
  peers(true);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::passed);
  EXPECT_EQ(finding("peer-mapping").seen, "the domain's XML: a reason");
  peers(false);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::failed);
  EXPECT_EQ(finding("peer-mapping").remedy, "a remedy");
  peers(std::nullopt);
  EXPECT_EQ(outcome("peer-mapping"), Outcome::notObservable);
}

TEST_F(Guest, ReportsMirroredGuestWithoutNcclTopology) {
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::waived);
  topologyFile(Outcome::passed);
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::passed);
  topologyFile(Outcome::warning);
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::failed);
  EXPECT_EQ(finding("guest-nccl-topology").remedy, "a remedy");
  topologyFile(Outcome::waived);
  EXPECT_EQ(outcome("guest-nccl-topology"), Outcome::notObservable);
}

}  // namespace
}  // namespace vfpass::doctor
