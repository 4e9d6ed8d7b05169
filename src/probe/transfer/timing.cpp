#include "transfer/timing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

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

namespace {

// With three passes, one that was held up by a retransmission is not the median.
constexpr std::size_t leastPasses = 3;

}  // namespace

std::uint64_t Pace::nextWarmUp() const {
  const std::uint64_t first = std::min(limits_.slots, limits_.depth);
  if (warmUps_ == 0) {
    return first;
  }
  if (warmUps_ > 1 || first == limits_.slots) {
    return 0;
  }
  const double estimate =
      warmUpSeconds_ * static_cast<double>(limits_.slots) / static_cast<double>(first);
  return wholeSeconds_ + estimate <= limits_.limitSeconds ? limits_.slots : 0;
}

std::uint64_t Pace::nextPass() const {
  if (messages_ < limits_.iterations) {
    return std::min(limits_.slots, limits_.iterations - messages_);
  }
  if (reachedMinimum() || wholeSeconds_ + slowestPass_ > limits_.limitSeconds) {
    return 0;
  }
  return limits_.slots;
}

void Pace::warmedUp(std::uint64_t messages, double wholeSeconds) {
  ++warmUps_;
  warmSlots_ = std::max(warmSlots_, messages);
  warmUpSeconds_ = wholeSeconds;
  wholeSeconds_ += wholeSeconds;
}

void Pace::passed(std::uint64_t messages, double timedSeconds, double wholeSeconds) {
  messages_ += messages;
  wholeSeconds_ += wholeSeconds;
  slowestPass_ = std::max(slowestPass_, wholeSeconds);
  // The first pass is always over the whole ring, because that is never larger than `iterations`.
  if (messages == limits_.slots) {
    fastestPass_ = passes_.empty() ? timedSeconds : std::min(fastestPass_, timedSeconds);
    passes_.push_back(timedSeconds);
  }
}

// Every pass counts with the time of the fastest one, so a retransmission does not use up the
// minimum.
bool Pace::reachedMinimum() const {
  if (messages_ < limits_.iterations) {
    return false;
  }
  return limits_.minimumSeconds <= 0 ||
         (passes_.size() >= leastPasses &&
          static_cast<double>(passes_.size()) * fastestPass_ >= limits_.minimumSeconds);
}

double paceLimit(double secondsLeft, std::size_t runsLeft) {
  constexpr double most = 20;
  return std::min(most, secondsLeft / 2 / static_cast<double>(std::max<std::size_t>(runsLeft, 1)));
}

namespace {

double nearestRank(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto place = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(place, sorted.size() - 1)];
}

}  // namespace

Statistics summarize(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  Statistics result;
  result.minimum = values.front();
  result.maximum = values.back();
  result.median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  result.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.percentile99 = nearestRank(values, 0.99);
  result.percentile999 = nearestRank(values, 0.999);
  return result;
}

nlohmann::json toJson(const Statistics& statistics, double unit) {
  return {{"minimum", statistics.minimum / unit},     {"median", statistics.median / unit},
          {"mean", statistics.mean / unit},           {"p99", statistics.percentile99 / unit},
          {"p99_9", statistics.percentile999 / unit}, {"maximum", statistics.maximum / unit}};
}

}  // namespace vfpass::probe
