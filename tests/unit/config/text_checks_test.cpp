#include "yaml_reader.hpp"

#include <gtest/gtest.h>

namespace vfpass::config {
namespace {

using namespace std::string_view_literals;

TEST(TextChecks, AcceptsOrdinaryText) {
  EXPECT_FALSE(checkFileText(""));
  EXPECT_FALSE(checkFileText("a: b\r\n\tc: \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\n"));
}

TEST(TextChecks, RefusesInvalidUtf8) {
  for (const auto bad : {"\x80"sv, "\xc0\xaf"sv, "\xc3"sv, "\xe0\x80\x80"sv, "\xed\xa0\x80"sv,
                         "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff\xfe"sv, "\xe2\x82"sv}) {
    const auto fault = checkFileText("ok " + std::string(bad));
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->offset, 3U);
  }
}

TEST(TextChecks, RefusesControlAndInvisibleCharacters) {
  for (const auto bad : {"\0"sv, "\x1b"sv, "\x7f"sv, "\xc2\x85"sv, "\xc2\x9b"sv, "\xe2\x80\xae"sv,
                         "\xe2\x80\x8b"sv, "\xe2\x80\xa8"sv, "\xef\xbb\xbf"sv, "\r"sv, "\ra"sv}) {
    EXPECT_TRUE(checkFileText("ok " + std::string(bad)));
    EXPECT_TRUE(checkValueText("ok " + std::string(bad)));
  }
}

TEST(TextChecks, RefusesLineEndsAndTabsInValuesOnly) {
  for (const auto* text : {"a\nb", "a\tb", "a\r\nb"}) {
    EXPECT_FALSE(checkFileText(text));
    EXPECT_TRUE(checkValueText(text));
  }
}

TEST(TextChecks, ReportsByteOrderMark) {
  const auto fault = checkFileText("\xef\xbb\xbfversion: 1\n");
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->message.find("byte order mark"), std::string::npos);
}

TEST(LineIndex, CountsCharactersNotBytes) {
  const std::string text = "a\n\xc3\xa4\xe2\x82\xacx: 1\n";
  const LineIndex lines(text);
  EXPECT_EQ(lines.positionOf(0), (Position{1, 1}));
  EXPECT_EQ(lines.positionOf(1), (Position{1, 2}));
  EXPECT_EQ(lines.positionOf(2), (Position{2, 1}));
  EXPECT_EQ(lines.positionOf(7), (Position{2, 3}));
}

TEST(LineIndex, AcceptsOffsetsInAnyOrder) {
  const LineIndex lines("ab\ncde\nf");
  EXPECT_EQ(lines.positionOf(5), (Position{2, 3}));
  EXPECT_EQ(lines.positionOf(5), (Position{2, 3}));
  EXPECT_EQ(lines.positionOf(4), (Position{2, 2}));
  EXPECT_EQ(lines.positionOf(7), (Position{3, 1}));
  EXPECT_EQ(lines.positionOf(1), (Position{1, 2}));
}

TEST(LineIndex, ClampsOffsetsOutsideTheText) {
  const LineIndex lines("a\nb");
  EXPECT_EQ(lines.positionOf(-1), (Position{1, 1}));
  EXPECT_EQ(lines.positionOf(1000), (Position{2, 2}));
  EXPECT_EQ(LineIndex("").positionOf(0), (Position{1, 1}));
}

}  // namespace
}  // namespace vfpass::config
