#include "vfpass/base/own_process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "vfpass/error.hpp"

namespace vfpass {
namespace {

volatile std::sig_atomic_t asked = 0;
bool handled = false;  // by an object that exists

// Calls only async-signal-safe functions, see signal-safety(7).
void ask(int signal) {
  constexpr std::string_view text = "vfpass: stopping; a second signal stops it immediately\n";
  const int error = errno;
  asked = signal;
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
  errno = error;
}

}  // namespace

StopSignals::StopSignals() : outermost_(!handled) {
  if (!outermost_) {
    return;
  }
  handled = true;
  asked = 0;
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    ::sigaction(numbers[index], nullptr, &before_[index]);
    if (before_[index].sa_handler != SIG_IGN) {
      struct sigaction action = {};
      action.sa_handler = ask;
      action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal has the default action
      ::sigaction(numbers[index], &action, nullptr);
    }
  }
}

StopSignals::~StopSignals() {
  if (!outermost_) {
    return;
  }
  handled = false;
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    ::sigaction(numbers[index], &before_[index], nullptr);
  }
}

void StopSignals::throwIfAsked() {
  const int signal = asked;
  if (signal != 0) {
    asked = 0;
    throw Cancelled(signal, std::string("stopped by SIG") + ::sigabbrev_np(signal));
  }
}

void endBySignal(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  std::abort();  // reached only if the signal is blocked
}

// open(2) returns the lowest free descriptor, and those below this one are in use already.
void occupyClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) {
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

bool isScreen(int stream) {
  const char* kind = std::getenv("TERM");
  const std::string_view name = kind == nullptr ? "" : kind;
  return ::isatty(stream) == 1 && !name.empty() && name != "dumb";
}

std::filesystem::path programFile(const std::string& name) {
  std::error_code ignored;
  namespace fs = std::filesystem;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  for (const char* folder : {"libexec/vfpass", "libexec"}) {
    if (fs::exists(prefix / folder / name, ignored)) {
      return prefix / folder / name;
    }
  }
  return fs::path(VFPASS_LIBEXEC) / name;
}

}  // namespace vfpass
