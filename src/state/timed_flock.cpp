#include "timed_flock.hpp"

#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>

namespace vfpass::state {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void throwErrno(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

// A real-time signal that neither libc nor libvirt uses.
int wakeUpSignal() { return SIGRTMIN + 7; }

/// Installed once and never removed: the default action would end the process, and another thread
/// may still wait when this one is done.
void installWakeUpHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: flock(2) must return EINTR
    if (::sigaction(wakeUpSignal(), &action, nullptr) != 0) {
      throwErrno("sigaction");
    }
  });
}

/// Unblocks the signal for this thread during its lifetime.
class UnblockedSignal {
 public:
  UnblockedSignal() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, wakeUpSignal());
    ::pthread_sigmask(SIG_UNBLOCK, &signals, &before_);
  }
  UnblockedSignal(const UnblockedSignal&) = delete;
  UnblockedSignal& operator=(const UnblockedSignal&) = delete;
  ~UnblockedSignal() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

timespec toTimespec(std::chrono::nanoseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

/// Signals this thread at the deadline and every 10 ms after it: a signal that arrives just before
/// flock(2) blocks has no effect, but the next one interrupts it.
class ThreadTimer {
 public:
  explicit ThreadTimer(Clock::time_point deadline) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = wakeUpSignal();
    // glibc 2.36 has no public name for the member (sigev_notify_thread_id in timer_create(2)).
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) {
      throwErrno("timer_create");
    }
    const auto left =
        std::max<std::chrono::nanoseconds>(deadline - Clock::now(), std::chrono::nanoseconds(1));
    const itimerspec schedule{toTimespec(std::chrono::milliseconds(10)), toTimespec(left)};
    ::timer_settime(timer_, 0, &schedule, nullptr);
  }
  ThreadTimer(const ThreadTimer&) = delete;
  ThreadTimer& operator=(const ThreadTimer&) = delete;
  ~ThreadTimer() { ::timer_delete(timer_); }

 private:
  timer_t timer_{};
};

}  // namespace

bool flockUntil(int descriptor, Clock::time_point deadline) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    return true;
  }
  if (errno != EWOULDBLOCK) {
    throwErrno("flock");
  }
  if (Clock::now() >= deadline) {
    return false;
  }
  installWakeUpHandler();
  const UnblockedSignal unblocked;
  const ThreadTimer timer(deadline);
  while (Clock::now() < deadline) {
    if (::flock(descriptor, LOCK_EX) == 0) {
      return true;
    }
    if (errno != EINTR) {
      throwErrno("flock");
    }
  }
  return false;
}

}  // namespace vfpass::state
