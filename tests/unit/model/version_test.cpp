#include "vfpass/version.hpp"

#include <gtest/gtest.h>

namespace vfpass {
namespace {

TEST(Version, ParsesFirstTwoNumbers) {
  EXPECT_EQ(leadingVersion("6.1.0-30-amd64"), (Version{6, 1}));
  EXPECT_EQ(leadingVersion("10.2"), (Version{10, 2}));
  for (const char* rubbish : {"", "6", "6.", "x.1", ".1", "99999999999.1"}) {
    EXPECT_EQ(leadingVersion(rubbish), std::nullopt) << rubbish;
  }
}

TEST(Version, UnknownIsNotOlder) {
  EXPECT_TRUE(isOlder(Version{6, 18}, {6, 19}));
  EXPECT_FALSE(isOlder(Version{6, 19}, {6, 19}));
  EXPECT_FALSE(isOlder(std::nullopt, {6, 19}));
  EXPECT_EQ(versionText(Version{9, 0}), "9.0");
  EXPECT_EQ(versionText(std::nullopt), "of unknown version");
}

}  // namespace
}  // namespace vfpass
