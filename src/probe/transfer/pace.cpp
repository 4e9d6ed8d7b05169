#include "transfer/pace.hpp"

#include <algorithm>

namespace vfpass::probe {
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

}  // namespace vfpass::probe
