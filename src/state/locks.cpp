#include "vfpass/state/locks.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <system_error>
#include <utility>

#include "state_folder.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

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

/// Takes an exclusive flock, waiting in the kernel until the deadline; calls `beforeWaiting` if it
/// has to. Returns false if the deadline has passed. Throws std::system_error if flock(2) fails.
bool flockUntil(int descriptor, Clock::time_point deadline,
                const std::function<void()>& beforeWaiting) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    return true;
  }
  if (errno != EWOULDBLOCK) {
    throwErrno("flock");
  }
  if (Clock::now() >= deadline) {
    return false;
  }
  beforeWaiting();
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

using Clock = std::chrono::steady_clock;

std::string named(const std::filesystem::path& file) { return "lock " + printable(file.string()); }

FileDescriptor openLockFile(const std::filesystem::path& file) {
  // O_NONBLOCK: a FIFO of that name must not block open(2).
  FileDescriptor opened(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!opened) {
    throw systemFailure("cannot open " + named(file), errno, file.parent_path());
  }
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(named(file) + ": not a regular file", "remove it, then try again");
  }
  requireTrusted(file, status);
  makeExistingFilePrivate(file);  // whoever can open it could hold it for ever
  return opened;
}

/// False if the file was removed or replaced while we waited: our lock then excludes nobody.
bool isStillInPlace(const FileDescriptor& opened, const std::filesystem::path& file) {
  struct stat ours = {};
  struct stat named = {};
  return ::fstat(opened.get(), &ours) == 0 && ::lstat(file.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

// `vfpass detach train0`: the program without its folder, and its arguments.
std::string readOwnCommand() {
  constexpr std::size_t longest = 60;
  std::array<char, 256> text{};
  const FileDescriptor file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
  std::string line(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  line.erase(0, line.rfind('/', line.find('\0')) + 1);
  std::ranges::replace(line, '\0', ' ');
  return line.substr(0, std::min(longest, line.find_last_not_of(' ') + 1));
}

/// Only for messages: the kernel decides who holds a lock. So a full disk does not matter. The
/// command is there, too, because reading /proc/PID/cmdline of the holder could hang: the kernel
/// waits for the memory map of that process, and reads a page that may be on a hung disk.
void writeHolder(int descriptor) {
  static const std::string command = readOwnCommand();
  const std::string holder = std::to_string(::getpid()) + " " + command + "\n";
  if (::ftruncate(descriptor, 0) == 0) {
    static_cast<void>(!::pwrite(descriptor, holder.data(), holder.size(), 0));
  }
}

// An earlier version writes only the number of its process.
std::string holderOf(int descriptor) {
  std::array<char, 128> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string_view content(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string_view number = content.substr(0, content.find_first_of(" \n"));
  const auto pid = parseNumber(number);
  if (!pid) {
    return "another process";
  }
  const std::string_view command = trim(content.substr(number.size()));
  return "process " + std::to_string(*pid) +
         (command.empty() ? "" : " (" + printable(command) + ")");
}

std::atomic<LockWaitObserver*> lockWaitObserver = nullptr;

}  // namespace

LockWaitObserver::LockWaitObserver(Observe observe)
    : observe_(std::move(observe)), outer_(lockWaitObserver.exchange(this)) {}

LockWaitObserver::~LockWaitObserver() { lockWaitObserver = outer_; }

void LockWaitObserver::tell(const LockWait* wait) {
  if (const LockWaitObserver* observer = lockWaitObserver) {
    observer->observe_(wait);
  }
}

namespace {

bool lockUntil(const FileDescriptor& opened, const std::filesystem::path& file,
               Clock::time_point deadline) {
  bool waits = false;
  const ScopeGuard over([&] {
    if (waits) {
      LockWaitObserver::tell(nullptr);
    }
  });
  try {
    return flockUntil(opened.get(), deadline, [&] {
      const LockWait wait{file, holderOf(opened.get())};
      waits = true;
      LockWaitObserver::tell(&wait);
    });
  } catch (const std::system_error& error) {
    throw systemFailure("cannot take " + named(file), error.code().value(), file.parent_path());
  }
}

/// Locks the file that is in place at that moment. False if another process holds it until the
/// deadline.
bool openAndLock(const std::filesystem::path& file, Clock::time_point deadline,
                 FileDescriptor& opened) {
  makePrivateFolder(file.parent_path());
  do {
    opened = openLockFile(file);
    if (!lockUntil(opened, file, deadline)) {
      return false;
    }
  } while (!isStillInPlace(opened, file));
  writeHolder(opened.get());
  return true;
}

[[noreturn]] void throwHeld(const FileDescriptor& opened, const std::filesystem::path& file,
                            std::chrono::milliseconds timeout) {
  const std::string holder = holderOf(opened.get());
  throw Error(
      named(file) + " is held by " + holder + "; waited " + std::to_string(timeout.count()) + " ms",
      "wait until it finishes, then try again; `fuser -v " + shellArgument(file.string()) +
          "` shows the holder");
}

}  // namespace

FileLock::FileLock(int descriptor) : descriptor_(descriptor) {}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  FileLock taken(std::move(other));
  std::swap(descriptor_, taken.descriptor_);  // its destructor releases the previous lock
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) {
    // Unlock explicitly: an flock lasts as long as any copy of the descriptor, and a forked child
    // that hangs in a kernel write has one.
    ::flock(descriptor_, LOCK_UN);
    ::close(descriptor_);
  }
}

FileLock FileLock::acquire(const std::filesystem::path& file, std::chrono::milliseconds timeout) {
  FileDescriptor opened;
  if (!openAndLock(file, Clock::now() + timeout, opened)) {
    throwHeld(opened, file, timeout);
  }
  return FileLock(opened.release());
}

std::optional<FileLock> FileLock::tryAcquire(const std::filesystem::path& file) {
  FileDescriptor opened;
  if (!openAndLock(file, Clock::time_point::min(), opened)) {
    return std::nullopt;
  }
  return FileLock(opened.release());
}

std::vector<FileLock> lockPfs(const std::filesystem::path& runDirectory,
                              const std::vector<PciAddress>& pfs,
                              std::chrono::milliseconds timeout) {
  std::vector<PciAddress> sorted = pfs;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto deadline = Clock::now() + timeout;
  std::vector<FileLock> locks;
  for (const PciAddress& pf : sorted) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    locks.push_back(FileLock::acquire(runDirectory / ("pf-" + toString(pf) + ".lock"),
                                      std::max(left, std::chrono::milliseconds(0))));
  }
  return locks;
}

std::filesystem::path softRoceLockFile(const std::filesystem::path& runDirectory) {
  return runDirectory / "soft-roce.lock";
}

std::vector<FileLock> lockPlan(const std::filesystem::path& runDirectory, const Plan& plan,
                               std::chrono::milliseconds timeout) {
  auto locks = lockPfs(runDirectory, lockedPfs(plan), timeout);
  if (changesSoftRoce(plan)) {
    locks.push_back(FileLock::acquire(softRoceLockFile(runDirectory), timeout));
  }
  return locks;
}

std::filesystem::path domainLockFile(const std::filesystem::path& runDirectory,
                                     const Uuid& domain) {
  return runDirectory / ("domain-" + toString(domain) + ".lock");
}

std::filesystem::path writerLockFile(const std::filesystem::path& runDirectory,
                                     std::int64_t operation) {
  return runDirectory / ("operation-" + std::to_string(operation) + ".lock");
}

std::string lockSubject(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  const auto dash = std::min(name.find('-'), name.size() - 1);
  const std::string kind = name.substr(0, dash);
  for (const auto& [prefix, subject] :
       {std::pair("pf", "PF "), {"domain", "domain "}, {"operation", "operation "}}) {
    if (kind == prefix) {
      return subject + printable(name.substr(dash + 1));
    }
  }
  return file.filename() == softRoceLockFile({}) ? "the SoftRoCE links" : printable(file.string());
}

}  // namespace vfpass::state
