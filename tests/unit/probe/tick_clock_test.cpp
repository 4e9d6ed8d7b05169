#include "transfer/tick_clock.hpp"

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

}  // namespace
}  // namespace vfpass::probe
