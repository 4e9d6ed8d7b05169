#include "vfpass/base/node_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(NodeSet, ParsesRangesListsAndExclusions) {
  EXPECT_THAT(parseNodeSet("0"), Optional(ElementsAre(0)));
  EXPECT_THAT(parseNodeSet("0-3,8"), Optional(ElementsAre(0, 1, 2, 3, 8)));
  EXPECT_THAT(parseNodeSet("0-3,^2"), Optional(ElementsAre(0, 1, 3)));
  EXPECT_THAT(parseNodeSet(" 1, 3 "), Optional(ElementsAre(1, 3)));
  EXPECT_THAT(parseNodeSet(""), Optional(IsEmpty()));
}

TEST(NodeSet, RejectsInvalidSets) {
  for (const char* text : {"x", "3-1", "1-", "-1", "^1", "1,,2", "99999", "0-99999"}) {
    EXPECT_FALSE(parseNodeSet(text)) << text;
  }
}

TEST(NodeSet, FormatsLikeLibvirt) {
  for (const char* text : {"", "0", "0-3,8", "1,3,5,7", "0-1,3-4,1023"}) {
    EXPECT_EQ(formatNodeSet(*parseNodeSet(text)), text);
  }
}

TEST(NodeSet, ReadsMasksOfTheKernel) {
  EXPECT_EQ(formatNodeSet(cpusInMask("0000000f")), "0-3");
  EXPECT_EQ(formatNodeSet(cpusInMask("00000001,80000000")), "31-32");
  EXPECT_EQ(formatNodeSet(cpusInMask("")), "");
  EXPECT_EQ(cpusInMask(std::string(1000, 'f')).size(), 1024U);
}

}  // namespace
}  // namespace vfpass
