// Replaces the clocks and the functions that sleep, for a worker whose time a scheduler owns.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "worker/world_socket.hpp"

namespace {

using vfpass::crash::ask;
using vfpass::crash::isScheduled;
using vfpass::crash::virtualTime;

constexpr std::int64_t second = 1'000'000'000;

bool isVirtual(clockid_t clock) {
  return isScheduled() && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

void sleepFor(std::int64_t nanoseconds) { ask({"sleep", std::to_string(nanoseconds)}); }

std::int64_t nanosecondsOf(const timespec& time) { return time.tv_sec * second + time.tv_nsec; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!isVirtual(clock)) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  }
  *time = virtualTime(clock);
  return 0;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  if (!isScheduled()) {
    return static_cast<int>(::syscall(SYS_gettimeofday, time, zone));
  }
  const timespec now = virtualTime(CLOCK_REALTIME);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}

int nanosleep(const timespec* duration, timespec* rest) {
  if (!isScheduled()) {
    return static_cast<int>(::syscall(SYS_nanosleep, duration, rest));
  }
  sleepFor(nanosecondsOf(*duration));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* until, timespec* rest) {
  if (!isVirtual(clock)) {
    return ::syscall(SYS_clock_nanosleep, clock, flags, until, rest) == 0 ? 0 : errno;
  }
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  sleepFor(nanosecondsOf(*until) - (absolute ? nanosecondsOf(virtualTime(clock)) : 0));
  return 0;
}

int usleep(useconds_t microseconds) {
  const timespec duration{microseconds / 1'000'000, microseconds % 1'000'000 * 1000L};
  return nanosleep(&duration, nullptr);
}

// Without descriptors it is a sleep. Otherwise it waits for a child of this process, which works in
// real time, so that no deadline of virtual time may end it.
int poll(pollfd* descriptors, nfds_t count, int milliseconds) {
  if (!isScheduled() || milliseconds == 0) {
    return static_cast<int>(::syscall(SYS_poll, descriptors, count, milliseconds));
  }
  if (count == 0) {
    sleepFor(milliseconds * (second / 1000));
    return 0;
  }
  return static_cast<int>(::syscall(SYS_poll, descriptors, count, -1));
}
}
