#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace vfpass::host {

/// A point in time at which waiting ends.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds timeout) : end_(Clock::now() + timeout) {}

  /// Milliseconds left for poll(2), never negative; rounded up, so that 0 means "over".
  [[nodiscard]] int remaining() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 24LL * 3600 * 1000));
  }
  [[nodiscard]] bool over() const { return remaining() == 0; }

 private:
  Clock::time_point end_;
};

/// Polls `done()` at once and then at growing intervals until it returns true or the deadline
/// passes, for kernel state that has no notification. Returns the last result of `done`.
template <typename Condition>
bool pollUntil(const Deadline& deadline, Condition done) {
  constexpr int longest = 250;
  for (int wait = 1; !done(); wait = std::min(2 * wait, longest)) {
    const int remaining = deadline.remaining();
    if (remaining == 0) {
      return false;
    }
    ::poll(nullptr, 0, std::min(wait, remaining));
  }
  return true;
}

}  // namespace vfpass::host
