#include "watchdog.hpp"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "vfpass/events/journal_socket.hpp"

namespace vfpass::hook {
namespace {

volatile std::sig_atomic_t exitCodeAtDeadline = 1;
std::string entryAtDeadline;  // written before the alarm is set

// Only async-signal-safe calls: the alarm can interrupt anything.
void onAlarm(int /*signal*/) {
  constexpr std::string_view message =
      "vfpass: deadline exceeded; run `vfpass recover` to complete or roll back the operation\n";
  events::sendEntry(entryAtDeadline);
  if (write(STDERR_FILENO, message.data(), message.size()) < 0) {
    _exit(exitCodeAtDeadline);
  }
  _exit(exitCodeAtDeadline);
}

}  // namespace

void startWatchdog(std::chrono::seconds timeout, int exitCode, const std::string& entry) {
  exitCodeAtDeadline = exitCode;
  entryAtDeadline = entry;
  struct sigaction action {};
  action.sa_handler = onAlarm;
  sigaction(SIGALRM, &action, nullptr);
  // The daemon may have blocked signals around fork.
  sigset_t unblocked;
  sigemptyset(&unblocked);
  sigaddset(&unblocked, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
  alarm(static_cast<unsigned>(timeout.count()));
}

}  // namespace vfpass::hook
