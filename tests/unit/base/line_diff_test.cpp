#include "vfpass/base/unified_diff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace vfpass {
namespace {

// The two sides of a comparison must be the two texts, and its length must be minimal.
TEST(CompareLines, ReproducesBothTextsWithShortestDiff) {
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
    // Longest common subsequence by dynamic programming.
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

TEST(CompareLines, ReplacesAllWhenNothingIsCommon) {
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
}  // namespace vfpass
