#include "transfer/statistics.hpp"

#include <gmock/gmock.h>

namespace vfpass::probe {
namespace {

TEST(Statistics, SummarizesOddAndEvenSeries) {
  const Statistics odd = summarize({3, 1, 2});
  EXPECT_DOUBLE_EQ(odd.minimum, 1);
  EXPECT_DOUBLE_EQ(odd.median, 2);
  EXPECT_DOUBLE_EQ(odd.maximum, 3);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(Statistics, PercentilesAreNearestRank) {
  std::vector<double> values;
  for (int i = 1; i <= 1000; ++i) {
    values.push_back(i);
  }
  const Statistics statistics = summarize(values);
  EXPECT_DOUBLE_EQ(statistics.percentile99, 990);
  EXPECT_DOUBLE_EQ(statistics.percentile999, 999);
  EXPECT_DOUBLE_EQ(statistics.mean, 500.5);
}

TEST(Statistics, SummarizesEmptyAndSingleSeries) {
  EXPECT_DOUBLE_EQ(summarize({}).median, 0);
  EXPECT_DOUBLE_EQ(summarize({7}).percentile999, 7);
}

}  // namespace
}  // namespace vfpass::probe
