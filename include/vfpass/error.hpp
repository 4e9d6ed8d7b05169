#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace vfpass {

/// Exit status of the process. The numbers are documented in README and stable.
enum class ExitCode {
  done = 0,        ///< done, nothing to do, or every check passed
  failed = 1,      ///< an operation failed
  badInput = 2,    ///< bad usage or bad configuration
  pending = 3,     ///< changes pending or drift (plan, status, check)
  unproven = 4,    ///< verification failed
  refused = 5,     ///< refused (would disrupt a device in use)
  unverified = 6,  ///< could not be verified in the guest
};

/// A failure: the object, what failed and the system's reason (`what()`), and an instruction that
/// resolves it (`remedy()`, may be empty). Thrown by every stage; printed by main and by the hook.
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

/// A kernel call did not return before its deadline. It may still take effect, now or later. The
/// device's lock is still held, so nothing that takes that lock may be tried afterwards, not even
/// reading the device's `driver_override`.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

}  // namespace vfpass
