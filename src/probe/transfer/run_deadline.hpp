#pragma once

#include <chrono>
#include <string>

namespace vfpass::probe {

/// The point in time by which the whole run must end.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds timeout)
      : end_(std::chrono::steady_clock::now() + timeout) {}

  /// Remaining time, at least zero.
  [[nodiscard]] std::chrono::milliseconds left() const;

  /// Throws Error if the deadline has passed; `doing` names the current operation.
  void check(const std::string& doing) const;

 private:
  std::chrono::steady_clock::time_point end_;
};

}  // namespace vfpass::probe
