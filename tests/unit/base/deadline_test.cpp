#include "vfpass/base/deadline.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace vfpass {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Deadline, HasNoNegativeTimeLeft) {
  const Deadline past(milliseconds{-5});
  EXPECT_TRUE(past.over());
  EXPECT_EQ(past.left(), milliseconds{0});
  EXPECT_EQ(past.pollTimeout(), 0);
}

TEST(Deadline, CountsDown) {
  const Deadline distant(hours{1});
  EXPECT_FALSE(distant.over());
  EXPECT_LE(distant.left(), hours{1});
  EXPECT_GT(distant.left(), hours{1} - milliseconds{60'000});
}

TEST(Deadline, FitsIntoTimeoutOfPoll) {
  EXPECT_EQ(Deadline(hours{24 * 365}).pollTimeout(), std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace vfpass
