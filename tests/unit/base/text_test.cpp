#include "vfpass/base/text.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace vfpass {
namespace {

TEST(ParseNumber, ParsesWholeTextOrNothing) {
  EXPECT_EQ(parseNumber("42"), 42U);
  EXPECT_EQ(parseNumber("ff", 16), 255U);
  for (const char* bad : {"", " 1", "1 ", "-1", "+1", "0x10", "99999999999999999999"}) {
    EXPECT_FALSE(parseNumber(bad)) << bad;
  }
}

TEST(ClosestSpelling, SuggestsOnlySimilarWords) {
  const std::vector<std::string> words = {"spoof-check", "link-state", "trust"};
  EXPECT_EQ(closestSpelling("spoofcheck", words), "spoof-check");
  EXPECT_EQ(closestSpelling("Trsut", words), "trust");
  EXPECT_FALSE(closestSpelling("banana", words));
}

TEST(Printable, EscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("vm-\xc3\xa9"), "vm-\xc3\xa9");
  EXPECT_EQ(printable("a\nb\x1b[2J"), "a\\x0ab\\x1b[2J");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1 control sequence introducer";
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "truncated";
}

TEST(Printable, KeepsNewlinesInMessagesOnly) {
  EXPECT_EQ(printableLines("2 problems:\n  a\x1b[2J\n  b\r\n"),
            "2 problems:\n  a\\x1b[2J\n  b\\x0d\n");
  EXPECT_EQ(printableLine("a\nb\tc"), "a b\\x09c");
  EXPECT_EQ(printableLine(printable("a\nb")), "a\\x0ab") << "a name that is already printable";
}

TEST(SplitLines, KeepsEmptyLinesAndNeedsNoFinalNewline) {
  EXPECT_EQ(splitLines("a\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(splitLines("").empty());
}

TEST(ErrnoText, IncludesSymbolicName) {
  EXPECT_EQ(errnoText(EBUSY), "Device or resource busy (EBUSY)");
}

}  // namespace
}  // namespace vfpass
