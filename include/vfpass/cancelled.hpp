#pragma once

#include <stdexcept>
#include <string>

namespace vfpass {

/// A signal requested termination. Not an Error, so that handlers that report errors let it
/// propagate; operations in progress are rolled back while it unwinds the stack. main then ends the
/// process by the same signal.
class Cancelled : public std::runtime_error {
 public:
  Cancelled(int signal, const std::string& message)
      : std::runtime_error(message), signal_(signal) {}

  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace vfpass
