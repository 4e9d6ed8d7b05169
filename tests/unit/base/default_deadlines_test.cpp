#include "vfpass/base/default_deadlines.hpp"

#include <gtest/gtest.h>

namespace vfpass::deadlines {
namespace {

TEST(Deadlines, TimeOfVerificationGrowsWithVfs) {
  EXPECT_EQ(verifyVfs(0, false), verify);
  EXPECT_EQ(verifyVfs(1, false), verify);
  EXPECT_EQ(verifyVfs(16, false), seconds{600 + 15 * 60});
  EXPECT_EQ(verifyVfs(16, true), seconds{600 + 15 * 180});
}

}  // namespace
}  // namespace vfpass::deadlines
