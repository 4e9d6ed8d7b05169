#pragma once

#include <poll.h>

#include <algorithm>

#include "vfpass/base/deadline.hpp"

namespace vfpass::host {

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

}  // namespace vfpass::host
