#include "supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/events/journal_event.hpp"

namespace vfpass::hook {
namespace {

volatile std::sig_atomic_t exitCodeAtDeadline = 1;
volatile pid_t workerAtDeadline = 0;
std::string entryAtDeadline;  // written before the alarm is set

// Only async-signal-safe calls: the alarm can interrupt anything.
void onAlarm(int /*signal*/) {
  constexpr std::string_view message =
      "vfpass: deadline exceeded; run `vfpass recover` to complete or roll back the operation\n";
  if (workerAtDeadline > 0) {
    ::kill(workerAtDeadline, SIGKILL);  // takes effect when the kernel lets it go
  }
  events::sendEntry(entryAtDeadline);
  if (write(STDERR_FILENO, message.data(), message.size()) < 0) {
    _exit(exitCodeAtDeadline);
  }
  _exit(exitCodeAtDeadline);
}

void unblockAlarm() {
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
}

[[noreturn]] void runWorker(const FileDescriptor& messages, pid_t supervisor,
                            const std::function<int()>& work) {
  std::signal(SIGALRM, SIG_DFL);  // fork has cleared the alarm
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // As stdin, too, which is then not readable: the XML has been read.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::getppid() != supervisor || ::dup2(messages.get(), descriptor) < 0) {
      ::raise(SIGKILL);
    }
  }
  const int code = work();
  std::fflush(nullptr);
  _exit(code);
}

void passOn(const FileDescriptor& messages) {
  std::array<char, 4096> buffer{};
  ssize_t length = 0;
  while ((length = ::read(messages.get(), buffer.data(), buffer.size())) > 0 ||
         (length < 0 && errno == EINTR)) {
    if (length > 0) {
      static_cast<void>(!::write(STDERR_FILENO, buffer.data(), static_cast<std::size_t>(length)));
    }
  }
}

int resultOf(pid_t worker) {
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) {
    throw Error("the hook's worker was killed by signal " + std::to_string(WTERMSIG(status)),
                "run `vfpass recover`");
  }
  return WEXITSTATUS(status);
}

}  // namespace

void startWatchdog(std::chrono::seconds timeout, int exitCode, const std::string& entry) {
  exitCodeAtDeadline = exitCode;
  entryAtDeadline = entry;
  struct sigaction action {};
  action.sa_handler = onAlarm;
  sigaction(SIGALRM, &action, nullptr);
  unblockAlarm();  // the daemon may have blocked signals around fork
  alarm(static_cast<unsigned>(timeout.count()));
}

int superviseWorker(const std::function<int()>& work) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error("cannot create a pipe: " + errnoText(errno));
  }
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const pid_t self = ::getpid();
  const pid_t worker = ::fork();
  if (worker < 0) {
    throw Error("cannot start a process: " + errnoText(errno), "free memory or processes");
  }
  if (worker == 0) {
    runWorker(writing, self, work);
  }
  workerAtDeadline = worker;
  writing = FileDescriptor();
  passOn(reading);
  return resultOf(worker);
}

}  // namespace vfpass::hook
