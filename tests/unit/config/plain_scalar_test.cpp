#include "yaml_reader.hpp"

#include <gmock/gmock.h>

namespace vfpass::config {
namespace {

using ::testing::Optional;

class AmbiguousNumber : public ::testing::TestWithParam<const char*> {};

TEST_P(AmbiguousNumber, IsDetected) { EXPECT_TRUE(ambiguousNumber(GetParam())); }

INSTANTIATE_TEST_SUITE_P(config, AmbiguousNumber,
                         ::testing::Values("010", "00", "-010", "+07", "0o17", "0O17", "0x64",
                                           "0XfF", "0b101", "1_000", "0_1", "1_000.5", "12:30",
                                           "12:30:45", "1:2.5", "52:54:00:12:34:56", "0000:01:00.0",
                                           "0000:81:00.0", "00:11:22:33:44:55:66:77"));

class ClearText : public ::testing::TestWithParam<const char*> {};

TEST_P(ClearText, IsNotAmbiguous) { EXPECT_EQ(ambiguousNumber(GetParam()), std::nullopt); }

INSTANTIATE_TEST_SUITE_P(config, ClearText,
                         ::testing::Values("", "-", "0", "10", "-10", "1.5", "0.5", "1e3", "90%",
                                           "802.1Q", "0000:3b:00.0", "52:54:00:ab:cd:ef",
                                           "fe80::1/64", "2001:db8::1", "192.168.100.10/24", "0xyz",
                                           "_1", "a_b", "1:", ":1", "1:234", "1::2", "1_a",
                                           "0011:2233:4455:6677",
                                           "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"));

Node classified(std::string_view text) {
  Node node;
  classifyPlainScalar(text, node);
  return node;
}

TEST(PlainScalar, NamesTheKindOfNumber) {
  EXPECT_THAT(ambiguousNumber("010"), Optional(std::string("an octal number")));
  EXPECT_THAT(ambiguousNumber("0x64"), Optional(std::string("a hexadecimal number")));
  EXPECT_THAT(ambiguousNumber("1:30"), Optional(std::string("a base-60 number")));
}

TEST(PlainScalar, ReadsBooleansLikeNetplan) {
  for (const char* yes : {"true", "True", "TRUE", "yes", "Yes", "on"}) {
    EXPECT_EQ(classified(yes).kind, NodeKind::boolean) << yes;
    EXPECT_TRUE(classified(yes).boolean) << yes;
  }
  for (const char* no : {"false", "no", "NO", "off"}) {
    EXPECT_EQ(classified(no).kind, NodeKind::boolean) << no;
    EXPECT_FALSE(classified(no).boolean) << no;
  }
  EXPECT_EQ(classified("n").kind, NodeKind::text);
}

TEST(PlainScalar, ReadsNumbers) {
  EXPECT_EQ(classified("100").integer, 100);
  EXPECT_EQ(classified("-5").integer, -5);
  EXPECT_EQ(classified("+5").integer, 5);
  EXPECT_EQ(classified("1.5").kind, NodeKind::number);
  EXPECT_EQ(classified("1e3").kind, NodeKind::number);
  EXPECT_EQ(classified("99999999999999999999").kind, NodeKind::number);
  EXPECT_EQ(classified(std::string(1000, '9')).kind, NodeKind::number);
}

TEST(PlainScalar, ReadsOtherScalarsAsText) {
  for (const char* text :
       {"train0", "90%", "802.1Q", "-", ".", "-.", ".inf", "inf", "nan", "1.2.3"}) {
    EXPECT_EQ(classified(text).kind, NodeKind::text) << text;
  }
}

}  // namespace
}  // namespace vfpass::config
