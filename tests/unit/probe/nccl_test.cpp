#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "nccl/nccl_library.hpp"
#include "nccl/nccl_ranks.hpp"
#include "nccl/nccl_session.hpp"
#include "nccl/nccl_values.hpp"

namespace vfpass::probe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t valueSeed = 7;

std::string errorOf(const NcclPlan& plan) {
  try {
    validate(plan);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

NcclPlan twoGpus() {
  NcclPlan plan;
  plan.gpus = {0, 1};
  plan.ranks = 2;
  plan.sizes = {1024};
  return plan;
}

TEST(NcclValues, SumOfAllRanksIsExact) {
  // The largest value in the worst order: one rank after the other.
  float sum = 0;
  for (int rank = 0; rank < mostNcclRanks; ++rank) {
    sum += 4096.0F * static_cast<float>(rank + 1);
  }
  EXPECT_EQ(sum, 4096.0F * (mostNcclRanks * (mostNcclRanks + 1) / 2));
  EXPECT_LT(sum, 16777216.0F);
}

TEST(NcclValues, AreWholePositiveAndDiffer) {
  std::set<float> values;
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const float value = valueAt(index, valueSeed);
    EXPECT_EQ(value, std::floor(value));
    EXPECT_GE(value, 1);
    EXPECT_LE(value, 4096);
    values.insert(value);
  }
  EXPECT_GT(values.size(), 800U);
  EXPECT_NE(valueAt(5, valueSeed), valueAt(5 + (std::uint64_t{1} << 32U), valueSeed));
}

TEST(NcclValues, EachWrongValueIsCountedAndTheFirstDescribed) {
  std::array<float, 100> values{};
  fillValues(values, 40, valueSeed, 3);
  EXPECT_EQ(compareValues(values, 40, valueSeed, 3).count, 0U);

  values[7] += 1;
  values[99] = NAN;

  const WrongValues wrong = compareValues(values, 40, valueSeed, 3);
  EXPECT_EQ(wrong.count, 2U);
  EXPECT_EQ(wrong.first, 47U);
  EXPECT_EQ(wrong.expected, valueAt(47, valueSeed) * 3);
  EXPECT_EQ(wrong.seen, wrong.expected + 1);
}

TEST(NcclValues, AnotherPlaceOrFactorIsWrong) {
  std::array<float, 100> values{};
  fillValues(values, 0, valueSeed, 3);

  EXPECT_GT(compareValues(values, 1, valueSeed, 3).count, 95U);
  EXPECT_EQ(compareValues(values, 0, valueSeed, 2).count, 100U);
}

TEST(NcclVersion, BothEncodingsAreRead) {
  EXPECT_EQ(ncclVersionText(2804), "2.8.4");
  EXPECT_EQ(ncclVersionText(21403), "2.14.3");
  EXPECT_EQ(ncclVersionText(22809), "2.28.9");
}

TEST(NcclLibrary, MissingOneIsNamedWithThePackage) {
  try {
    const NcclLibrary library({"/nonexistent/libnccl.so.2"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot load /nonexistent/libnccl.so.2"));
    EXPECT_THAT(error.remedy(), HasSubstr("libnccl2"));
  }
}

TEST(NcclPlan, SizesOfThePublishedRunsAreKnown) {
  const std::uint64_t gibibyte = std::uint64_t{1} << 30U;
  EXPECT_THAT(ncclSizes("published"), ElementsAre(gibibyte, 10 * gibibyte));
  EXPECT_EQ(ncclSizes("sizes").front(), 8U);
  EXPECT_EQ(ncclSizes("sizes").back(), 8 * gibibyte);
  EXPECT_EQ(ncclSizes("sizes").size(), 31U);
}

TEST(NcclPlan, ContradictionsAreRefused) {
  EXPECT_EQ(errorOf(twoGpus()), "");

  NcclPlan plan = twoGpus();
  plan.first = 1;
  EXPECT_THAT(errorOf(plan), HasSubstr("has 2 ranks, fewer than 3"));
  plan = twoGpus();
  plan.gpus = {0, 0};
  EXPECT_THAT(errorOf(plan), HasSubstr("GPU 0 is named twice"));
  plan = twoGpus();
  plan.ranks = 91;
  EXPECT_THAT(errorOf(plan), HasSubstr("more than 90 ranks"));
  plan = twoGpus();
  plan.sizes = {2, 1};
  EXPECT_THAT(errorOf(plan), HasSubstr("not ascending"));
}

TEST(NcclIterations, WarmUpsAndTimedOnesFitIntoTheTimeLeft) {
  const auto chosen = [](double seconds, double left) {
    const Iterations found = iterationsFor(seconds, {20, 10, left});
    return std::pair(found.warmUps, found.timed);
  };
  EXPECT_EQ(chosen(0.001, 100), std::pair(5U, 20U));
  EXPECT_EQ(chosen(0, 100), std::pair(5U, 20U));
  EXPECT_EQ(chosen(2, 100), std::pair(5U, 5U)) << "at most 10 seconds timed";
  EXPECT_EQ(chosen(12, 13), std::pair(0U, 1U)) << "slower than 10 seconds, but in time";
  EXPECT_EQ(chosen(12, 100), std::pair(1U, 1U));
  EXPECT_EQ(chosen(12, 11), std::pair(0U, 0U));
  EXPECT_EQ(chosen(1, -1), std::pair(0U, 0U));
  for (unsigned left = 1; left < 40; ++left) {
    const auto [warmUps, timed] = chosen(1, left);
    EXPECT_LE(warmUps + timed, left);
    EXPECT_GE(timed, 1U);
  }
}

// nccl-tests, doc/PERFORMANCE.md: 2(n-1)/n and (n-1)/n.
TEST(NcclFigures, BusBandwidthIsThatOfNcclTests) {
  CollectiveRun run{Collective::allReduce, 1073741824, 1, 0.011774};
  EXPECT_NEAR(busBandwidth(run, 16) / 1e9, 170.99, 0.01);  // the published line of 1 GiB
  run.collective = Collective::allGather;
  EXPECT_NEAR(busBandwidth(run, 16) / 1e9, 85.5, 0.1);
  EXPECT_EQ(busBandwidth(run, 1), 0);
}

}  // namespace
}  // namespace vfpass::probe
