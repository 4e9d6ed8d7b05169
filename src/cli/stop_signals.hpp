#pragma once

#include <array>
#include <csignal>

namespace vfpass::cli {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP only asks to stop, so that what was begun in
/// a guest is ended there; one more ends the process at once, as ever. A signal that was ignored
/// stays so (nohup, a script's background job). One object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Throws Cancelled when it was asked to stop: once, because cleaning up is not to be stopped.
  static void throwIfAsked();

 private:
  static constexpr std::array numbers{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, numbers.size()> before_{};
};

/// Ends this process by the signal: shells and systemd look at that.
[[noreturn]] void endBySignal(int signal);

}  // namespace vfpass::cli
