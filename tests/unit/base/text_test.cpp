#include "vfpass/base/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>

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
  EXPECT_EQ(closestSpelling("link-stat", words, 1), "link-state");
  EXPECT_FALSE(closestSpelling("link-sta", words, 1));
}

TEST(JoinFirst, CountsWhatItDoesNotName) {
  EXPECT_EQ(joinFirst({}), "");
  EXPECT_EQ(joinFirst({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(joinFirst({"a", "b", "c", "d", "e", "f"}), "a, b, c, d, e, and 1 more");
  EXPECT_EQ(joinFirst({"a", "b", "c"}, 1), "a, and 2 more");
}

TEST(Text, OfNumbersIsTheSameEverywhere) {
  EXPECT_EQ(joinNumbers({2, 0}), "0, 2");
  EXPECT_EQ(joinNumbers({}), "");
  EXPECT_EQ(hexadecimal(0x8001), "0x8001");
  EXPECT_EQ(hexadecimal(0xf), "0x000f");
  EXPECT_EQ(counted(0, "problem"), "0 problems");
  EXPECT_EQ(counted(1, "problem"), "1 problem");
}

TEST(Printable, EscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("vm-\xc3\xa9"), "vm-\xc3\xa9");
  EXPECT_EQ(printable("a\nb\x1b[2J"), "a\\x0ab\\x1b[2J");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1 control sequence introducer";
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "truncated";
}

// A name with one of these looks like another name, or changes the order of the text around it.
TEST(Printable, EscapesCharactersThatReorderTextOrCannotBeSeen) {
  EXPECT_EQ(printable("vm\u202egnp.1"), "vm\\xe2\\x80\\xaegnp.1");
  for (const char* each :
       {"\u00ad",     "\u061c",     "\u0605",     "\u115f",     "\u180e",     "\u200b",
        "\u200c",     "\u200d",     "\u200e",     "\u200f",     "\u2028",     "\u2029",
        "\u202a",     "\u202b",     "\u202c",     "\u202d",     "\u202e",     "\u2060",
        "\u2063",     "\u2066",     "\u2067",     "\u2068",     "\u2069",     "\u206f",
        "\u3164",     "\ufe00",     "\ufe0f",     "\ufeff",     "\uffa0",     "\ufff9",
        "\U000110bd", "\U0001d173", "\U000e0000", "\U000e0001", "\U000e0041", "\U000e007f",
        "\U000e0100", "\U000e01ef", "\u034f"}) {
    const std::string safe = printable(std::string("a") + each + "b");
    EXPECT_TRUE(std::all_of(safe.begin(), safe.end(), [](unsigned char c) { return c < 0x80; }))
        << safe;
    EXPECT_TRUE(safe.starts_with("a\\x") && safe.ends_with("b")) << safe;
    EXPECT_EQ(printableLines(each), printable(each)) << safe;
    EXPECT_EQ(printableLine(each), printable(each)) << safe;
  }
}

TEST(Printable, KeepsVisibleTextOfEveryScript) {
  for (const char* each : {"\u00a0", "\u00e9", "\u0416", "\u05d0\u0627", "\u4e2d", "\u2010",
                           "\u2030", "\uff21", "\ufffd", "\U0001f600", "\U000f0000"}) {
    EXPECT_EQ(printable(each), each);
  }
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

TEST(Shell, QuotesOneWord) {
  EXPECT_EQ(shellQuoted("/etc/netplan/50-a.yaml"), "/etc/netplan/50-a.yaml");
  EXPECT_EQ(shellQuoted(""), "''");
  EXPECT_EQ(shellQuoted("-rf"), "'-rf'");
  EXPECT_EQ(shellQuoted("it's $(id) `id`"), "'it'\\''s $(id) `id`'");
}

TEST(ShellArgument, QuotesAndEscapesUntrustedName) {
  EXPECT_EQ(shellArgument("train0"), "train0");
  EXPECT_EQ(shellArgument("my vm"), "'my vm'");
  EXPECT_EQ(shellArgument("a; reboot"), "'a; reboot'");
  EXPECT_EQ(shellArgument("it's"), "'it'\\''s'");
  EXPECT_EQ(shellArgument("a\x1b[2J\nb"), "'a\\x1b[2J\\x0ab'");
}

}  // namespace

}  // namespace vfpass
