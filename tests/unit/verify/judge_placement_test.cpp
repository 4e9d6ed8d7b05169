#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using Nodes = std::optional<std::set<unsigned>>;

HostPlacement placed(const Nodes& vcpus, const Nodes& memory) {
  HostPlacement placement;
  placement.devices = {{"gpu0", 1}, {"rail0", 1}};
  placement.hostNodes = 2;
  placement.vcpuNodes = vcpus;
  placement.memoryNodes = memory;
  return placement;
}

Finding judgedPlacement(const HostPlacement& placement) {
  return judgePlacement(placement).value_or(Finding{});
}

TEST(JudgePlacementTest, PassesOnNodeOfDevices) {
  const Finding found = judgedPlacement(placed({{1}}, {{1}}));
  EXPECT_EQ(found.key, "numa-placement");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.observer, Observer::host);
  EXPECT_EQ(found.seen, "gpu0, rail0 on node 1; vCPUs on node 1, memory on node 1");
}

TEST(JudgePlacementTest, WarnsAboutOtherNode) {
  const Finding vcpus = judgedPlacement(placed({{0}}, {{1}}));
  EXPECT_EQ(vcpus.outcome, Outcome::warning);
  EXPECT_THAT(vcpus.seen, HasSubstr("gpu0, rail0 may be on another node than the vCPUs"));
  EXPECT_THAT(vcpus.remedy, HasSubstr("vcpu-placement"));
  const Finding memory = judgedPlacement(placed({{1}}, {{0}}));
  EXPECT_EQ(memory.outcome, Outcome::warning);
  EXPECT_THAT(memory.seen, HasSubstr("another node than the memory"));
}

TEST(JudgePlacementTest, WarnsWithoutPlacement) {
  const Finding found = judgedPlacement(placed({}, {}));
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_THAT(found.seen, HasSubstr("vCPUs not restricted to a node"));
}

TEST(JudgePlacementTest, GuestOfSeveralNodesNeedsCells) {
  HostPlacement both = placed({{0, 1}}, {{0, 1}});
  EXPECT_THAT(judgedPlacement(both).seen, HasSubstr("no NUMA cells"))
      << "far vCPUs that nothing shows";
  both.devices.push_back({"rail1", 0});
  EXPECT_EQ(judgedPlacement(both).outcome, Outcome::warning);
  both.guestCells = true;
  EXPECT_EQ(judgedPlacement(both).outcome, Outcome::passed);
}

TEST(JudgePlacementTest, UnknownHasNotPassed) {
  HostPlacement placement = placed({{1}}, {{1}});
  placement.automatic = true;
  EXPECT_EQ(judgedPlacement(placement).outcome, Outcome::waived);
  placement.hostNodes = 1;
  EXPECT_FALSE(judgePlacement(placement)) << "one node";
  EXPECT_FALSE(judgePlacement({})) << "unknown";
}

}  // namespace
}  // namespace vfpass::verify
