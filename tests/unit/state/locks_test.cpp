#include "vfpass/state/locks.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "child.hpp"
#include "fake/temporary_folder.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::state {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;

const PciAddress pfA{0, 0x3b, 0, 0};
const PciAddress pfB{0, 0x5e, 0, 0};

class LocksTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "run"; }
  [[nodiscard]] std::filesystem::path file() const { return folder() / "x.lock"; }
  [[nodiscard]] std::unique_ptr<Child> holder() const {
    auto child = std::make_unique<Child>([this](const Child::Say& say) {
      const FileLock lock = FileLock::acquire(file(), milliseconds(1000));
      say("held");
      ::pause();
    });
    EXPECT_EQ(child->hear(), "held");
    return child;
  }
  [[nodiscard]] std::string failure(milliseconds timeout) const {
    try {
      static_cast<void>(FileLock::acquire(file(), timeout));
    } catch (const Error& error) {
      return error.what();
    }
    return "no failure";
  }

  fake::TemporaryFolder temporary_;
};

TEST_F(LocksTest, LockFilesArePrivateAndNameTheHolder) {
  const FileLock lock = FileLock::acquire(file(), milliseconds(0));
  struct stat status = {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  ASSERT_EQ(::stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  pid_t pid = 0;
  std::ifstream(file()) >> pid;
  EXPECT_EQ(pid, ::getpid());
}

TEST_F(LocksTest, HasOneHolderAtATime) {
  {
    const FileLock lock = FileLock::acquire(file(), milliseconds(0));
    EXPECT_FALSE(FileLock::tryAcquire(file()).has_value());
  }
  EXPECT_TRUE(FileLock::tryAcquire(file()).has_value());
}

TEST_F(LocksTest, MovingKeepsAndReplacingReleasesTheLock) {
  FileLock first = FileLock::acquire(file(), milliseconds(0));
  FileLock moved = std::move(first);
  EXPECT_FALSE(FileLock::tryAcquire(file()).has_value());
  moved = FileLock::acquire(folder() / "other.lock", milliseconds(0));
  EXPECT_TRUE(FileLock::tryAcquire(file()).has_value());
  EXPECT_FALSE(FileLock::tryAcquire(folder() / "other.lock").has_value());
}

TEST_F(LocksTest, TimesOutAndNamesTheHolder) {
  const auto child = holder();
  const auto begun = Clock::now();
  const std::string message = failure(milliseconds(150));
  const auto waited = Clock::now() - begun;
  EXPECT_THAT(message, HasSubstr(file().string()));
  EXPECT_THAT(message, HasSubstr("held by process " + std::to_string(child->pid())));
  EXPECT_GE(waited, milliseconds(150));
  EXPECT_LT(waited, milliseconds(3000));
}

// Nothing of the process is read: that of a process in trouble could hang.
TEST_F(LocksTest, ReadsTheCommandOfTheHolderFromTheFile) {
  const auto child = holder();
  const auto heldBy = [&](const std::string& content) {
    std::ofstream(file(), std::ios::trunc) << content;
    return failure(milliseconds(20));
  };
  EXPECT_THAT(heldBy("12345 vfpass detach train0\n"),
              HasSubstr("held by process 12345 (vfpass detach train0)"));
  EXPECT_THAT(heldBy("1 vfpass a\nb\n"), HasSubstr("held by process 1 (vfpass a\\x0ab)"));
  const std::string earlier = heldBy(std::to_string(child->pid()) + "\n");
  EXPECT_THAT(earlier, HasSubstr("held by process " + std::to_string(child->pid())));
  EXPECT_THAT(earlier, testing::Not(HasSubstr("(")));
  EXPECT_THAT(heldBy("no number"), HasSubstr("held by another process"));
}

TEST_F(LocksTest, WaitIsObservedFromBeginToEnd) {
  std::vector<std::string> told;
  const auto observe = [&](const LockWait* wait) {
    told.push_back(wait != nullptr ? wait->file.string() + " " + wait->holder : "over");
  };
  const LockWaitObserver observer(observe);
  static_cast<void>(FileLock::acquire(file(), milliseconds(1000)));
  EXPECT_THAT(told, testing::IsEmpty()) << "it was free";
  const auto child = holder();
  static_cast<void>(FileLock::tryAcquire(file()));
  EXPECT_THAT(told, testing::IsEmpty()) << "it does not wait";
  {
    const LockWaitObserver inner([](const LockWait* /*wait*/) {});
    static_cast<void>(failure(milliseconds(20)));
  }
  EXPECT_THAT(told, testing::IsEmpty()) << "the inner one is told";
  static_cast<void>(failure(milliseconds(20)));
  ASSERT_EQ(told.size(), 2U);
  // The child is a copy of this program.
  EXPECT_THAT(told[0], HasSubstr(file().string() + " process " + std::to_string(child->pid()) +
                                 " (" + program_invocation_short_name));
  EXPECT_EQ(told[1], "over");
}

TEST(Locks, SubjectIsReadFromTheName) {
  const std::filesystem::path folder("/run/vfpass");
  const auto uuid = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  EXPECT_EQ(lockSubject(folder / "pf-0000:3b:00.0.lock"), "PF 0000:3b:00.0");
  EXPECT_EQ(lockSubject(domainLockFile(folder, uuid)), "domain " + toString(uuid));
  EXPECT_EQ(lockSubject(writerLockFile(folder, 12)), "operation 12");
  EXPECT_EQ(lockSubject(softRoceLockFile(folder)), "the SoftRoCE links");
  EXPECT_EQ(lockSubject("/var/lib/vfpass/vfpass.lock"), "/var/lib/vfpass/vfpass.lock");
}

TEST_F(LocksTest, WaiterSleepsInTheKernel) {
  const auto child = holder();
  rusage before = {};
  rusage after = {};
  ::getrusage(RUSAGE_THREAD, &before);
  static_cast<void>(failure(milliseconds(400)));
  ::getrusage(RUSAGE_THREAD, &after);
  // One sleep until the deadline; a poll every 10 ms would yield the processor 40 times.
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 10);
}

TEST_F(LocksTest, DeathOfTheHolderWakesTheWaiter) {
  const auto child = holder();
  const pid_t pid = child->pid();
  Child waiter([&](const Child::Say& say) {
    say("waiting");
    const FileLock lock = FileLock::acquire(file(), milliseconds(20000));
    say("mine");
  });
  ASSERT_EQ(waiter.hear(), "waiting");
  const auto begun = Clock::now();
  ::kill(pid, SIGKILL);
  EXPECT_EQ(waiter.hear(), "mine");
  EXPECT_LT(Clock::now() - begun, milliseconds(10000));
}

TEST_F(LocksTest, ThreadsWaitIndependently) {
  const auto child = holder();
  std::vector<std::thread> threads;
  std::array<Clock::duration, 4> waited{};
  for (std::size_t index = 0; index < waited.size(); ++index) {
    threads.emplace_back([&, index] {
      const auto begun = Clock::now();
      EXPECT_THAT(failure(milliseconds(50 * (index + 1))), HasSubstr("held by"));
      waited[index] = Clock::now() - begun;
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (std::size_t index = 0; index < waited.size(); ++index) {
    EXPECT_GE(waited[index], milliseconds(50 * (index + 1)));
  }
}

TEST_F(LocksTest, TimesOutWithAllSignalsBlocked) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto child = holder();
  EXPECT_THAT(failure(milliseconds(50)), HasSubstr("held by"));
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, &before, &now);
  EXPECT_EQ(sigismember(&now, SIGRTMIN + 7), 1);
}

TEST_F(LocksTest, WaiterNoticesARemovedFile) {
  // Otherwise the lock would have two holders, one of them of the removed file.
  std::unique_ptr<Child> child = holder();
  Child waiter([&](const Child::Say& say) {
    say("waiting");
    const FileLock lock = FileLock::acquire(file(), milliseconds(20000));
    say(std::filesystem::exists(file()) ? "mine" : "of a removed file");
    ::pause();
  });
  ASSERT_EQ(waiter.hear(), "waiting");
  std::filesystem::remove(file());
  child.reset();
  EXPECT_EQ(waiter.hear(), "mine");
  EXPECT_FALSE(FileLock::tryAcquire(file()).has_value());
}

// Whether a process has the file open.
bool hasOpen(pid_t process, const std::filesystem::path& file) {
  std::error_code ignored;
  const auto descriptors = "/proc/" + std::to_string(process) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(descriptors, ignored)) {
    if (std::filesystem::equivalent(entry.path(), file, ignored)) {
      return true;
    }
  }
  return false;
}

TEST_F(LocksTest, WaiterNoticesAReplacedFile) {
  std::unique_ptr<Child> child = holder();
  Child waiter([&](const Child::Say& say) { say(failure(milliseconds(2000))); });
  const auto end = Clock::now() + milliseconds(2000);
  while (!hasOpen(waiter.pid(), file()) && Clock::now() < end) {
    std::this_thread::yield();
  }
  const FileLock replacement = FileLock::acquire(folder() / "y.lock", milliseconds(0));
  std::filesystem::rename(folder() / "y.lock", file());
  child.reset();
  EXPECT_THAT(waiter.hear(), HasSubstr("is held by"));
}

TEST_F(LocksTest, HangingForkedChildDoesNotKeepTheLock) {
  std::unique_ptr<Child> hanging;
  {
    const FileLock lock = FileLock::acquire(file(), milliseconds(0));
    hanging = std::make_unique<Child>([](const Child::Say& say) {
      say("forked");
      ::pause();
    });
    ASSERT_EQ(hanging->hear(), "forked");
  }
  EXPECT_TRUE(FileLock::tryAcquire(file()).has_value());
}

TEST_F(LocksTest, RefusesLinksAndSpecialFiles) {
  std::filesystem::create_directories(folder());
  std::ofstream(temporary_.path() / "victim") << "keep";
  std::filesystem::create_symlink(temporary_.path() / "victim", file());
  EXPECT_THAT(failure(milliseconds(0)), HasSubstr("cannot open lock"));
  EXPECT_EQ(std::filesystem::file_size(temporary_.path() / "victim"), 4U);
  std::filesystem::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(failure(milliseconds(0)), HasSubstr("not a regular file"));
}

// Anyone who can open the file can hold its lock forever.
TEST_F(LocksTest, RefusesFilesAndDirectoriesWritableByOthers) {
  std::filesystem::create_directories(folder());
  std::ofstream(file()).flush();
  ::chmod(file().c_str(), 0666);
  EXPECT_THAT(failure(milliseconds(0)), HasSubstr("x.lock: writable by everyone"));
  ::chmod(file().c_str(), 0600);
  ::chmod(folder().c_str(), 01777);
  EXPECT_THAT(failure(milliseconds(0)), HasSubstr("run: writable by everyone"));
  ::chmod(folder().c_str(), 0700);
  EXPECT_EQ(failure(milliseconds(0)), "no failure");
  const auto link = temporary_.path() / "link";
  std::filesystem::create_directory_symlink(folder(), link);
  EXPECT_THROW(static_cast<void>(FileLock::acquire(link / "x.lock", milliseconds(0))), Error);
}

TEST_F(LocksTest, IgnoresInvalidContentOfTheFile) {
  std::filesystem::create_directories(folder());
  std::ofstream(file()) << "\x1b[31mroot";
  const FileDescriptor foreign(::open(file().c_str(), O_RDWR));
  ASSERT_EQ(::flock(foreign.get(), LOCK_EX), 0);
  const std::string message = failure(milliseconds(0));
  EXPECT_THAT(message, HasSubstr("held by another process"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST_F(LocksTest, TakesEachPfLockOnce) {
  const auto locks = lockPfs(folder(), {pfB, pfA, pfB}, milliseconds(0));
  EXPECT_EQ(locks.size(), 2U);
  EXPECT_FALSE(FileLock::tryAcquire(folder() / "pf-0000:3b:00.0.lock").has_value());
  EXPECT_FALSE(FileLock::tryAcquire(folder() / "pf-0000:5e:00.0.lock").has_value());
  EXPECT_TRUE(lockPfs(folder(), {}, milliseconds(0)).empty());
}

TEST_F(LocksTest, TakesPfLocksInAddressOrderAndReleasesThemOnFailure) {
  const FileLock blocked = FileLock::acquire(folder() / "pf-0000:3b:00.0.lock", milliseconds(0));
  EXPECT_THROW(lockPfs(folder(), {pfB, pfA}, milliseconds(20)), Error);
  // A comes first, so B was never touched.
  EXPECT_FALSE(std::filesystem::exists(folder() / "pf-0000:5e:00.0.lock"));
  const FileLock other = FileLock::acquire(folder() / "pf-0000:5e:00.0.lock", milliseconds(0));
  const PciAddress pfC{0, 0x10, 0, 0};
  EXPECT_THROW(lockPfs(folder(), {pfC, pfB}, milliseconds(20)), Error);
  EXPECT_TRUE(FileLock::tryAcquire(folder() / "pf-0000:10:00.0.lock").has_value());
}

TEST_F(LocksTest, OneTimeoutCountsForAllPfs) {
  const auto fileOfB = folder() / "pf-0000:5e:00.0.lock";
  std::optional<FileLock> lockOfA =
      FileLock::acquire(folder() / "pf-0000:3b:00.0.lock", milliseconds(0));
  const FileLock lockOfB = FileLock::acquire(fileOfB, milliseconds(0));
  // Releases A after part of the timeout, which it spends waiting for B.
  std::thread releasing([&] {
    EXPECT_THROW(static_cast<void>(FileLock::acquire(fileOfB, milliseconds(200))), Error);
    lockOfA.reset();
  });
  std::string message;
  try {
    static_cast<void>(lockPfs(folder(), {pfA, pfB}, milliseconds(1000)));
  } catch (const Error& error) {
    message = error.what();
  }
  releasing.join();
  EXPECT_THAT(message, HasSubstr("pf-0000:5e:00.0.lock"));
  EXPECT_THAT(message, testing::Not(HasSubstr("waited 1000 ms")));
}

TEST_F(LocksTest, EachOperationHasItsOwnWriterLock) {
  EXPECT_EQ(writerLockFile("/run/vfpass", 12), "/run/vfpass/operation-12.lock");
}

}  // namespace
}  // namespace vfpass::state
