#include "transfer/tick_clock.hpp"

#include <cmath>
#include <limits>

namespace vfpass::probe {
namespace {

using Source = std::function<std::uint64_t()>;

constexpr std::uint64_t window = 5'000'000;  // nanoseconds
constexpr double maxDeviation = 0.002;  // between two windows; allows for a pause of the process

struct Moment {
  std::uint64_t ticks = 0;
  std::uint64_t nanoseconds = 0;
};

// Reads both clocks at once. Takes the fastest of several tries, so that a pause of the process
// between the two reads does not matter.
Moment readBoth(const Source& counter, const Source& clock) {
  constexpr int tries = 8;
  Moment best;
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t before = clock();
    const std::uint64_t ticks = counter();
    const std::uint64_t after = clock();
    if (after - before < shortest) {
      shortest = after - before;
      best = {ticks, before + (after - before) / 2};
    }
  }
  return best;
}

std::optional<double> rateBetween(const Moment& begin, const Moment& end) {
  if (end.ticks <= begin.ticks || end.nanoseconds <= begin.nanoseconds) {
    return std::nullopt;
  }
  return static_cast<double>(end.nanoseconds - begin.nanoseconds) /
         static_cast<double>(end.ticks - begin.ticks);
}

Moment readAfter(const Moment& begin, const Source& counter, const Source& clock) {
  while (clock() < begin.nanoseconds + window) {
  }
  return readBoth(counter, clock);
}

}  // namespace

std::optional<double> nanosecondsPerTick(const Source& counter, const Source& clock) {
  const Moment begin = readBoth(counter, clock);
  const Moment middle = readAfter(begin, counter, clock);
  const Moment end = readAfter(middle, counter, clock);
  const auto first = rateBetween(begin, middle);
  const auto second = rateBetween(middle, end);
  if (!first || !second || std::abs(*first - *second) > maxDeviation * *first) {
    return std::nullopt;
  }
  return rateBetween(begin, end);
}

TickClock::TickClock() {
  static const auto rate = nanosecondsPerTick(processorTicks, kernelNanoseconds);
  if (rate) {
    usesCounter_ = true;
    secondsPerTick_ = *rate * 1e-9;
  }
}

}  // namespace vfpass::probe
