#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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

/// One mistake in a file, with the place for editors and programs.
struct Mistake {
  std::string file;
  int line = 0;    ///< from 1; 0: the file as a whole
  int column = 0;  ///< from 1; 0: the line as a whole
  std::string message;
  std::string remedy;  ///< may be empty
};

/// A failure: the object, what failed and the system's reason (`what()`), and an instruction that
/// resolves it (`remedy()`, may be empty). Thrown by every stage; printed by main and by the hook.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string remedy = {},
                 ExitCode code = ExitCode::failed)
      : std::runtime_error(message), remedy_(std::move(remedy)), code_(code) {}

  /// Bad input in files: `message` names each of these mistakes, too.
  Error(const std::string& message, std::vector<Mistake> mistakes, std::string remedy)
      : std::runtime_error(message),
        remedy_(std::move(remedy)),
        code_(ExitCode::badInput),
        mistakes_(std::move(mistakes)) {}

  [[nodiscard]] const std::string& remedy() const { return remedy_; }
  [[nodiscard]] ExitCode code() const { return code_; }
  [[nodiscard]] const std::vector<Mistake>& mistakes() const { return mistakes_; }

 private:
  std::string remedy_;
  ExitCode code_;
  std::vector<Mistake> mistakes_;
};

/// A kernel call did not return before its deadline. It may still take effect, now or later. The
/// device's lock is still held, so nothing that takes that lock may be tried afterwards, not even
/// reading the device's `driver_override`.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

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

/// Throws one Error with the messages of all these Errors, a TimeoutError if one of them is. Does
/// nothing if all of them are null.
void throwAny(const std::vector<std::exception_ptr>& failures);

/// Runs `call` and returns the Error that it throws, or null. Other exceptions pass through.
template <typename Call>
std::exception_ptr caught(Call call) {
  try {
    call();
    return nullptr;
  } catch (const Error&) {
    return std::current_exception();
  }
}

}  // namespace vfpass
