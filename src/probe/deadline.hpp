#pragma once

#include <chrono>
#include <string>

namespace vfpass::probe {

/// When all of it has to be over.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds patience)
      : end_(std::chrono::steady_clock::now() + patience) {}

  /// Not below zero.
  [[nodiscard]] std::chrono::milliseconds left() const;

  /// Throws Error once the time is over; `doing` is what took too long.
  void check(const std::string& doing) const;

 private:
  std::chrono::steady_clock::time_point end_;
};

}  // namespace vfpass::probe
