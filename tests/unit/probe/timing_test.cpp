#include "transfer/timing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace vfpass::probe {
namespace {

/// A clock that advances by a microsecond each time it is read.
class FakeClock {
 public:
  std::uint64_t clock() { return nanoseconds_ += 1000; }
  [[nodiscard]] std::uint64_t nanoseconds() const { return nanoseconds_; }

  std::optional<double> rateOf(const std::function<std::uint64_t()>& counter) {
    return nanosecondsPerTick(counter, [this] { return clock(); });
  }

 private:
  std::uint64_t nanoseconds_ = 1'000'000'000;
};

TEST(TickClock, MeasuresCounterThatRunsEvenly) {
  FakeClock fake;
  const auto rate = fake.rateOf([&] { return fake.nanoseconds() * 3; });
  ASSERT_TRUE(rate);
  EXPECT_NEAR(*rate, 1.0 / 3, 1e-3);
}

TEST(TickClock, RejectsCounterThatStops) {
  FakeClock fake;
  EXPECT_FALSE(fake.rateOf([] { return std::uint64_t{0}; }));
}

TEST(TickClock, RejectsCounterThatDecreases) {
  FakeClock fake;
  EXPECT_FALSE(fake.rateOf([&] { return ~fake.nanoseconds(); }));
}

TEST(TickClock, RejectsCounterThatChangesItsRate) {
  FakeClock fake;
  EXPECT_FALSE(fake.rateOf([&] { return fake.nanoseconds() * fake.nanoseconds(); }));
}

TEST(TickClock, AgreesWithKernelClock) {
  const TickClock clock;
  const std::uint64_t outerBegin = kernelNanoseconds();
  const std::uint64_t begin = clock.now();
  const std::uint64_t innerBegin = kernelNanoseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t innerEnd = kernelNanoseconds();
  const std::uint64_t end = clock.now();
  const std::uint64_t outerEnd = kernelNanoseconds();
  const double seconds = clock.secondsBetween(begin, end);
  EXPECT_GE(seconds, static_cast<double>(innerEnd - innerBegin) * 1e-9 * 0.99);
  EXPECT_LE(seconds, static_cast<double>(outerEnd - outerBegin) * 1e-9 * 1.01);
}

constexpr std::uint64_t paceSlots = 1024;

PaceLimits limits() { return {paceSlots, 128, 5000, 0.5, 20}; }

/// Runs the timed passes; one over the whole ring takes `timed` seconds, each `whole` seconds with
/// preparation and check. Returns their number.
std::size_t runPasses(Pace& pace, double timed, double whole) {
  std::size_t count = 0;
  const auto ring = static_cast<double>(pace.nextPass());
  for (std::uint64_t messages = pace.nextPass(); messages > 0; messages = pace.nextPass()) {
    pace.passed(messages, timed * static_cast<double>(messages) / ring, whole);
    ++count;
  }
  return count;
}

TEST(Pace, WarmsUpWholeRing) {
  Pace pace(limits());
  EXPECT_EQ(pace.nextWarmUp(), 128U);
  pace.warmedUp(128, 0.002);
  EXPECT_EQ(pace.nextWarmUp(), paceSlots);
  pace.warmedUp(paceSlots, 0.016);
  EXPECT_EQ(pace.nextWarmUp(), 0U);
  EXPECT_EQ(pace.warmSlots(), paceSlots);
}

TEST(Pace, WarmsUpSmallRingOnce) {
  Pace pace({16, 128, 16, 0.5, 20});
  EXPECT_EQ(pace.nextWarmUp(), 16U);
  pace.warmedUp(16, 0.1);
  EXPECT_EQ(pace.nextWarmUp(), 0U);
}

TEST(Pace, SlowDeviceDoesNotWarmUpWholeRing) {
  Pace pace(limits());
  pace.warmedUp(128, 4);
  EXPECT_EQ(pace.nextWarmUp(), 0U) << "the whole ring would take 32 of 20 seconds";
  EXPECT_EQ(pace.warmSlots(), 128U);
}

TEST(Pace, MeasuresForMinimumTime) {
  Pace pace(limits());
  // 64 MiB at 400 Gb/s: 1.34 ms.
  EXPECT_EQ(runPasses(pace, 0.00134, 0.02), 375U);
  EXPECT_TRUE(pace.reachedMinimum());
  EXPECT_GE(static_cast<double>(pace.passes().size()) * 0.00134, 0.5);
}

TEST(Pace, MakesThreePassesEvenIfOneIsLongEnough) {
  Pace pace({paceSlots, 128, paceSlots, 0.5, 20});
  EXPECT_EQ(runPasses(pace, 2, 3), 3U);
  EXPECT_EQ(pace.passes().size(), 3U);
}

TEST(Pace, TransfersAllIterationsOnSlowDevice) {
  Pace pace(limits());
  pace.warmedUp(128, 4);
  EXPECT_EQ(runPasses(pace, 30, 32), 5U);
  EXPECT_EQ(pace.messages(), 5000U);
}

TEST(Pace, OnePassOfSlowDeviceDoesNotReachMinimum) {
  Pace pace({paceSlots, 128, paceSlots, 0.5, 20});
  EXPECT_EQ(runPasses(pace, 30, 32), 1U);
  EXPECT_FALSE(pace.reachedMinimum()) << "a lost packet would decide";
}

TEST(Pace, StopsBeforeLimit) {
  Pace pace({16, 128, 16, 0.5, 20});
  pace.warmedUp(16, 1.5);
  // Each pass is relayed for 1.5 s, and transfers for 30 ms: 12 fit into the limit.
  EXPECT_EQ(runPasses(pace, 0.03, 1.5), 12U);
  EXPECT_FALSE(pace.reachedMinimum());
}

TEST(Pace, WithoutMinimumTransfersExactlyIterations) {
  Pace pace({paceSlots, 128, 5000, 0, 20});
  EXPECT_EQ(runPasses(pace, 0.001, 0.01), 5U);
  EXPECT_EQ(pace.messages(), 5000U);
  EXPECT_TRUE(pace.reachedMinimum());
}

TEST(Pace, RetransmissionIsNoMeasuredTime) {
  Pace pace({paceSlots, 128, paceSlots, 0.5, 20});
  pace.passed(paceSlots, 1.07, 1.1);  // a lost packet: the transport's timeout
  pace.passed(paceSlots, 0.001, 0.02);
  pace.passed(paceSlots, 0.001, 0.02);
  EXPECT_FALSE(pace.reachedMinimum());
  EXPECT_EQ(pace.nextPass(), paceSlots);
}

TEST(PaceLimit, SharesHalfOfTimeLeft) {
  EXPECT_DOUBLE_EQ(paceLimit(240, 1), 20);
  EXPECT_DOUBLE_EQ(paceLimit(60, 4), 7.5);
  EXPECT_DOUBLE_EQ(paceLimit(60, 48), 0.625);
  EXPECT_DOUBLE_EQ(paceLimit(0, 0), 0);
}

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
