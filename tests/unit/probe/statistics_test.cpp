#include "statistics.hpp"

#include <gmock/gmock.h>

namespace vfpass::probe {
namespace {

TEST(Statistics, OfAnOddAndAnEvenSeries) {
  const Statistics odd = summarize({3, 1, 2});
  EXPECT_DOUBLE_EQ(odd.least, 1);
  EXPECT_DOUBLE_EQ(odd.median, 2);
  EXPECT_DOUBLE_EQ(odd.most, 3);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(Statistics, TailIsTheNearestRank) {
  std::vector<double> values;
  for (int i = 1; i <= 1000; ++i) {
    values.push_back(i);
  }
  const Statistics statistics = summarize(values);
  EXPECT_DOUBLE_EQ(statistics.percentile99, 990);
  EXPECT_DOUBLE_EQ(statistics.percentile999, 999);
  EXPECT_DOUBLE_EQ(statistics.mean, 500.5);
}

TEST(Statistics, OfNothingAndOfOne) {
  EXPECT_DOUBLE_EQ(summarize({}).median, 0);
  EXPECT_DOUBLE_EQ(summarize({7}).percentile999, 7);
}

}  // namespace
}  // namespace vfpass::probe
