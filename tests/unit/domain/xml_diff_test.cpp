#include <gtest/gtest.h>

#include <random>

#include "line_diff.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

std::string lines(int first, int last) {
  std::string text;
  for (int line = first; line <= last; ++line) {
    text += std::to_string(line) + "\n";
  }
  return text;
}

TEST(XmlDiff, EqualTextsHaveNone) {
  EXPECT_EQ(xmlDiff("", ""), "");
  EXPECT_EQ(xmlDiff("a\nb\n", "a\nb\n"), "");
}

TEST(XmlDiff, ShowsThreeLinesAround) {
  EXPECT_EQ(xmlDiff(lines(1, 9), lines(1, 4) + "new\n" + lines(6, 9)),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+new\n 6\n 7\n 8\n");
}

TEST(XmlDiff, NamesEmptyAndSingleRangesAsDiffDoes) {
  EXPECT_EQ(xmlDiff("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(xmlDiff("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(XmlDiff, JoinsNearChangesAndPartsFarOnes) {
  const auto before = lines(1, 30);
  const auto changed = [&](int first, int second) {
    return replaced(replaced(before, "\n" + std::to_string(first) + "\n", "\nx\n"),
                    "\n" + std::to_string(second) + "\n", "\ny\n");
  };
  const auto hunks = [&](const std::string& after) {
    const auto text = xmlDiff(before, after);
    std::size_t count = 0;
    for (auto at = text.find("@@ -"); at != std::string::npos; at = text.find("@@ -", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(hunks(changed(10, 17)), 1U);
  EXPECT_EQ(hunks(changed(10, 18)), 2U);
}

TEST(XmlDiff, HidesPasswords) {
  const auto xml = readCase("q35.xml");
  const auto text = xmlDiff(xml, replaced(xml, "<video>", "<video a='b'>"));
  EXPECT_NE(text.find("autoport='yes' passwd='***'>"), std::string::npos) << text;
  EXPECT_EQ(text.find("geh"), std::string::npos);
  for (const char* secret : {"<a passwd='hush'/>", "<a passwd=\"hu'sh\"/>", "<a passwd = 'hush'/>",
                             "<a\npasswd=\n'hush\nhush'/>", "<a passwd='hush"}) {
    const auto shown = xmlDiff("", secret);
    EXPECT_EQ(shown.find("sh"), std::string::npos) << shown;
    EXPECT_NE(shown.find("***"), std::string::npos) << shown;
  }
}

TEST(XmlDiff, HidesNothingElse) {
  EXPECT_EQ(xmlDiff("", "<a passwdValidTo='2030' nopasswd='1'>passwd</a>"),
            "@@ -0,0 +1 @@\n+<a passwdValidTo='2030' nopasswd='1'>passwd</a>\n");
  EXPECT_EQ(xmlDiff("", "passwd="), "@@ -0,0 +1 @@\n+passwd=\n");
  EXPECT_EQ(xmlDiff("", " passwd="), "@@ -0,0 +1 @@\n+ passwd=\n");
}

TEST(XmlDiff, OfAnAttachHoldsOnlyAdditions) {
  const auto xml = readCase("q35.xml");
  const auto text = xmlDiff(xml, withLeases(xml, sampleLeases(xml), builtInTemplates()));
  EXPECT_EQ(text.find("\n-"), std::string::npos) << text;
  EXPECT_NE(text.find("\n+      <alias name='ua-vfpass-rail0'/>"), std::string::npos);
}

// Whatever the way, its two sides must be the two texts; and it must not be longer than needed.
TEST(CompareLines, AlwaysGivesBothTextsBack) {
  std::mt19937 random(7);
  const std::vector<std::string_view> words{"a", "b", "c"};
  const auto some = [&] {
    std::vector<std::string_view> text(random() % 12);
    for (auto& line : text) {
      line = words[random() % words.size()];
    }
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    const auto before = some();
    const auto after = some();
    std::vector<std::string_view> left;
    std::vector<std::string_view> right;
    std::size_t kept = 0;
    for (const auto& line : compareLines(before, after)) {
      if (line.origin != LineOrigin::after) {
        left.push_back(line.text);
      }
      if (line.origin != LineOrigin::before) {
        right.push_back(line.text);
      }
      kept += line.origin == LineOrigin::both ? 1U : 0U;
    }
    ASSERT_EQ(left, before);
    ASSERT_EQ(right, after);
    // Longest common subsequence by the textbook's table.
    std::vector<std::vector<std::size_t>> table(before.size() + 1,
                                                std::vector<std::size_t>(after.size() + 1));
    for (std::size_t i = 1; i <= before.size(); ++i) {
      for (std::size_t j = 1; j <= after.size(); ++j) {
        table[i][j] = before[i - 1] == after[j - 1] ? table[i - 1][j - 1] + 1
                                                    : std::max(table[i - 1][j], table[i][j - 1]);
      }
    }
    ASSERT_EQ(kept, table[before.size()][after.size()]);
  }
}

TEST(CompareLines, GivesUpOnTextsWithNothingInCommon) {
  std::vector<std::string> storage;
  for (int line = 0; line < 12000; ++line) {
    storage.push_back(std::to_string(line));
  }
  const std::vector<std::string_view> before(storage.begin(), storage.begin() + 6000);
  const std::vector<std::string_view> after(storage.begin() + 6000, storage.end());
  const auto found = compareLines(before, after);
  EXPECT_EQ(found.size(), 12000U);
  EXPECT_EQ(found.front().origin, LineOrigin::before);
  EXPECT_EQ(found.back().origin, LineOrigin::after);
}

}  // namespace
}  // namespace vfpass::domain
