#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace vfpass {

/// What the process tells its caller; the numbers are promised in README.
enum class ExitCode {
  done = 0,        ///< done, nothing to do, or every check passed
  failed = 1,      ///< something that was tried did not work
  badInput = 2,    ///< bad usage or bad configuration
  pending = 3,     ///< changes pending or drift (plan, status, check)
  unproven = 4,    ///< verification failed
  refused = 5,     ///< refused, because it would hurt somebody
  unverified = 6,  ///< the guest would not let us look
};

/// One failure, told once: what failed on which object and the system's reason (`what()`), and what
/// to do next (`remedy()`, may be empty). Thrown by every stage; printed by main and by the hook.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string remedy = {},
                 ExitCode code = ExitCode::failed)
      : std::runtime_error(message), remedy_(std::move(remedy)), code_(code) {}

  [[nodiscard]] const std::string& remedy() const { return remedy_; }
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  std::string remedy_;
  ExitCode code_;
};

/// A call to the kernel that did not return before its deadline: whether it has its effect, now or
/// later, is not known. The device's lock is still held, so nothing that takes that lock may be
/// tried afterwards, not even reading its `driver_override`.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

}  // namespace vfpass
