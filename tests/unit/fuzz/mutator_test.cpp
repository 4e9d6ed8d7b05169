#include "fuzz/mutator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace vfpass::fuzz {
namespace {

using testing::Contains;
using testing::SizeIs;

constexpr int mutations = 2000;

const std::vector<std::string> inputs{R"({"execute": "guest-info", "id": 7})",
                                      std::string(300, 'x') + " <domain type='kvm'/>", ""};

std::vector<std::string> sequence(std::uint64_t seed) {
  Mutator mutator(inputs, seed);
  std::vector<std::string> found(mutations);
  std::generate(found.begin(), found.end(), [&] { return mutator.next(); });
  return found;
}

TEST(MutatorTest, RepeatsTheSequenceOfASeed) { EXPECT_EQ(sequence(7), sequence(7)); }

TEST(MutatorTest, GivesEachSeedItsOwnSequence) {
  EXPECT_NE(sequence(1), sequence(2));
  EXPECT_NE(sequence(1), sequence(0));
}

TEST(MutatorTest, StaysBelowTheSizeOfEightInsertions) {
  constexpr std::size_t longestInput = 321;
  constexpr std::size_t longestInsertion = 321;  // a part of an input; words are shorter
  for (const auto& mutation : sequence(3)) {
    EXPECT_LE(mutation.size(), longestInput + 8 * longestInsertion);
  }
}

// Otherwise, large inputs would make every execution slow.
TEST(MutatorTest, CopiesAtMost4095BytesOfAnInputAtOnce) {
  Mutator mutator({std::string(100000, ' '), "a"}, 1);
  for (int i = 0; i < mutations; ++i) {
    const auto size = mutator.next().size();
    EXPECT_TRUE(size <= 1 + 8 * 4095 || size > 100000 - 8 * 4095) << size;
    EXPECT_LE(size, 100000 + 8 * 4095);
  }
}

TEST(MutatorTest, VariesEveryInput) {
  const auto found = sequence(1);
  EXPECT_THAT(std::set<std::string>(found.begin(), found.end()), SizeIs(testing::Gt(1500U)));
  for (const char* part : {"execute", "<domain"}) {
    EXPECT_THAT(found, Contains(testing::HasSubstr(part)));
  }
}

TEST(MutatorTest, InsertsLimitsOfIntegersAndWordsOfOtherInputs) {
  const auto found = sequence(1);
  for (const char* word : {"18446744073709551615", "1e999", "-1"}) {
    EXPECT_THAT(found, Contains(testing::HasSubstr(word)));
  }
  EXPECT_THAT(
      found, Contains(testing::AllOf(testing::HasSubstr("kvm"), testing::HasSubstr("guest-info"))));
}

TEST(MutatorTest, MutatesAnEmptyInput) {
  Mutator mutator({""}, 1);
  std::set<std::string> found;
  for (int i = 0; i < mutations; ++i) {
    found.insert(mutator.next());
  }
  EXPECT_THAT(found, SizeIs(testing::Gt(100U)));
}

}  // namespace
}  // namespace vfpass::fuzz
