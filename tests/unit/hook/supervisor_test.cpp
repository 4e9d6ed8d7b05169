#include "supervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

#include "vfpass/error.hpp"

namespace vfpass::hook {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

struct HookResult {
  int code = -1;
  std::string err;
  std::chrono::steady_clock::duration took{};
};

// Calls it in a process of its own and reads that process's stderr to its end, as libvirt does.
HookResult inHook(const std::function<int()>& hook) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const auto began = std::chrono::steady_clock::now();
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::_exit(hook());
  }
  ::close(ends[1]);
  HookResult result;
  std::array<char, 1024> buffer{};
  for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    result.err.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.took = std::chrono::steady_clock::now() - began;
  return result;
}

int say(const std::string& text, int code) {
  return ::write(STDERR_FILENO, text.data(), text.size()) < 0 ? 99 : code;
}

TEST(Supervisor, PassesOnResultAndMessages) {
  const HookResult result =
      inHook([] { return superviseWorker([] { return say("refused\n", 3); }); });
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "refused\n");
}

// Like a child that hangs in the kernel, this one outlives SIGKILL of the worker and keeps its
// descriptors.
TEST(Supervisor, EndsAtTheDeadlineAlthoughSomethingHangs) {
  const HookResult result = inHook([] {
    startWatchdog(1s, 7, "");
    return superviseWorker([]() -> int {
      if (::fork() == 0) {
        ::setsid();
        ::alarm(30);
      }
      for (;;) {
        ::pause();
      }
    });
  });
  EXPECT_EQ(result.code, 7);
  EXPECT_THAT(result.err, HasSubstr("deadline exceeded; run `vfpass recover`"));
  EXPECT_LT(result.took, 20s);
}

// A child inherits the blocked signals of its parent, here of libvirt's daemon.
TEST(Supervisor, EndsAtTheDeadlineAlthoughSignalsWereBlocked) {
  const HookResult result = inHook([] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    startWatchdog(1s, 7, "");
    return superviseWorker([] { return ::poll(nullptr, 0, 15000); });
  });
  EXPECT_EQ(result.code, 7);
}

// Nothing else stops a worker whose supervisor is gone.
TEST(Supervisor, WorkerEndsWithASupervisorThatIsKilled) {
  std::array<int, 2> life{};
  ASSERT_EQ(::pipe(life.data()), 0);
  inHook([&life] {
    ::close(life[0]);
    return superviseWorker([&life]() -> int {
      ::kill(::getppid(), SIGKILL);
      ::poll(nullptr, 0, 15000);
      return ::write(life[1], "x", 1) < 0 ? 1 : 0;
    });
  });
  ::close(life[1]);
  char byte = 0;
  EXPECT_EQ(::read(life[0], &byte, 1), 0) << "it went on";
  ::close(life[0]);
}

TEST(Supervisor, KillsItsWorkerAtTheDeadline) {
  std::array<int, 2> life{};
  ASSERT_EQ(::pipe(life.data()), 0);
  inHook([&life] {
    ::close(life[0]);
    startWatchdog(1s, 7, "");
    return superviseWorker([]() -> int {
      for (;;) {
        ::pause();
      }
      return 0;
    });
  });
  ::close(life[1]);
  char byte = 0;
  EXPECT_EQ(::read(life[0], &byte, 1), 0) << "its copy of the pipe is closed";
  ::close(life[0]);
}

TEST(Supervisor, ReportsAWorkerThatWasKilled) {
  const HookResult result = inHook([] {
    try {
      return superviseWorker([] { return ::raise(SIGKILL); });
    } catch (const Error& error) {
      return say(error.what(), 1);
    }
  });
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("killed by signal 9"));
}

}  // namespace
}  // namespace vfpass::hook
