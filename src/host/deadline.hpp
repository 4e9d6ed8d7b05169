#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace vfpass::host {

/// A point in time after which nothing is waited for any more.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds allowance) : end_(Clock::now() + allowance) {}

  /// Milliseconds left for poll(2), never negative; rounded up, so that 0 means "over".
  [[nodiscard]] int remaining() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 24LL * 3600 * 1000));
  }
  [[nodiscard]] bool over() const { return remaining() == 0; }

 private:
  Clock::time_point end_;
};

/// Looks again and again, at once and then at growing distances, until `done()` or the deadline.
/// For states of the kernel that no descriptor announces. Returns the last answer of `done`.
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
