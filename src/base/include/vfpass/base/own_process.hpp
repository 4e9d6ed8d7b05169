#pragma once

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

namespace vfpass {

/// During its lifetime the first SIGINT, SIGTERM or SIGHUP only requests a stop, so that operations
/// in a guest are cleaned up; a second signal kills the process. Signals that were ignored stay
/// ignored (nohup, background jobs of scripts). An object within the lifetime of another one has no
/// effect: a stop that was requested before stays requested.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Throws Cancelled if a stop was requested. Only once, so that the cleanup is not interrupted.
  static void throwIfAsked();

 private:
  static constexpr std::array numbers{SIGINT, SIGTERM, SIGHUP};
  bool outermost_;
  std::array<struct sigaction, numbers.size()> before_{};
};

/// Kills this process with the signal, so that shells and systemd see it as the reason.
[[noreturn]] void endBySignal(int signal);

/// Call first in main. Whoever starts us may have closed the standard streams (`>&-`, a daemon):
/// the next file or socket that is opened would get the free descriptor, and our messages would go
/// into it. Occupies each with one that can be neither read nor written in its direction, so that
/// its use still fails with EBADF.
void occupyClosedStreams();

/// Whether control sequences have an effect there: a terminal, and `TERM` names one that knows any.
bool isScreen(int stream);

/// A file that belongs to the running program, such as `vfpass-probe`: below the program's prefix,
/// wherever that is, or in its build directory; otherwise at the path that the build was configured
/// with. No environment variable changes the result.
std::filesystem::path programFile(const std::string& name);

}  // namespace vfpass
