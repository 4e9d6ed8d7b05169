#pragma once

#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace vfpass {

/// A point in time at which waiting ends.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds timeout) : end_(Clock::now() + timeout) {}

  /// Time left, never negative; rounded up, so that zero means "over".
  [[nodiscard]] std::chrono::milliseconds left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return std::max(left, std::chrono::milliseconds{0});
  }
  [[nodiscard]] bool over() const { return left().count() == 0; }

  /// The same for poll(2), whose timeout is an int.
  [[nodiscard]] int pollTimeout() const {
    using Count = std::chrono::milliseconds::rep;
    return static_cast<int>(std::min<Count>(left().count(), std::numeric_limits<int>::max()));
  }

 private:
  Clock::time_point end_;
};

/// Waits until one of these processes has exited, without reaping it. False: none has when the
/// deadline is over. True at once if one does not exist or cannot be waited for, so that the
/// caller asks waitpid(2). A pidfd becomes readable when its process exits (Linux 5.3).
bool waitForExit(const std::vector<pid_t>& processes, const Deadline& deadline);

/// Polls `done()` at once and then at growing intervals until it returns true or the deadline
/// passes, for kernel state that has no notification. Returns the last result of `done`.
template <typename Condition>
bool pollUntil(const Deadline& deadline, Condition done) {
  constexpr int longest = 250;
  for (int wait = 1; !done(); wait = std::min(2 * wait, longest)) {
    const int remaining = deadline.pollTimeout();
    if (remaining == 0) {
      return false;
    }
    ::poll(nullptr, 0, std::min(wait, remaining));
  }
  return true;
}

}  // namespace vfpass
