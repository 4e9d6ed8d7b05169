#pragma once

#include <stdexcept>
#include <string>

namespace vfpass {

/// Somebody has asked to stop, by a signal. No Error, because what reports errors must let it
/// through; what was begun is taken back on its way. main ends the process by the same signal.
class Cancelled : public std::runtime_error {
 public:
  Cancelled(int signal, const std::string& message)
      : std::runtime_error(message), signal_(signal) {}

  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace vfpass
