#include "concurrent_runs.hpp"

#include <gtest/gtest.h>

namespace vfpass::verify {
namespace {

Lease vfOn(const std::string& entry, unsigned bus) {
  Lease lease;
  lease.entry = entry;
  lease.pf = {0, static_cast<std::uint8_t>(bus), 0, 0};
  return lease;
}

using Groups = std::vector<VfGroup>;

TEST(IndependentVfs, VfsOfDifferentPfsAreIndependent) {
  EXPECT_EQ(independentVfs({vfOn("a", 1), vfOn("b", 2), vfOn("c", 1)}, {}), Groups({{0, 2}, {1}}));
}

TEST(IndependentVfs, VfsThatShareGpuDepend) {
  EXPECT_EQ(independentVfs({vfOn("a", 1), vfOn("b", 2), vfOn("c", 3)},
                           {{"a", {0}}, {"b", {1, 2}}, {"c", {2}}}),
            Groups({{0}, {1, 2}}));
}

TEST(IndependentVfs, VfJoinsTwoGroups) {
  EXPECT_EQ(independentVfs({vfOn("a", 1), vfOn("b", 2), vfOn("c", 1)}, {{"b", {0}}, {"c", {0}}}),
            Groups({{0, 1, 2}}));
}

TEST(IndependentVfs, EachGroupNeedsTwoProcessors) {
  EXPECT_EQ(concurrentGroups(8, 16), 8U);
  EXPECT_EQ(concurrentGroups(8, 7), 3U);
  EXPECT_EQ(concurrentGroups(3, 64), 3U);
  EXPECT_EQ(concurrentGroups(8, 1), 1U);
  EXPECT_EQ(concurrentGroups(8, 0), 1U) << "unknown";
  EXPECT_EQ(concurrentGroups(0, 8), 1U);
}

}  // namespace
}  // namespace vfpass::verify
