#pragma once

#include <array>
#include <csignal>

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

}  // namespace vfpass
