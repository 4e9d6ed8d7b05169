#include "vfpass/state/locks.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "failure.hpp"
#include "state_folder.hpp"
#include "timed_flock.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

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

/// Only for messages: the kernel decides who holds a lock. So a full disk does not matter.
void writePid(int descriptor) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) == 0) {
    static_cast<void>(!::pwrite(descriptor, pid.data(), pid.size(), 0));
  }
}

std::string holderOf(int descriptor) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string_view content(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto pid = parseNumber(trim(content));
  return pid ? "process " + std::to_string(*pid) : "another process";
}

bool lockUntil(const FileDescriptor& opened, const std::filesystem::path& file,
               Clock::time_point deadline) {
  try {
    return flockUntil(opened.get(), deadline);
  } catch (const std::system_error& error) {
    throw systemFailure("cannot take " + named(file), error.code().value(), file.parent_path());
  }
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
  const auto deadline = Clock::now() + timeout;
  makePrivateFolder(file.parent_path());
  while (true) {
    FileDescriptor opened = openLockFile(file);
    if (!lockUntil(opened, file, deadline)) {
      throwHeld(opened, file, timeout);
    }
    if (isStillInPlace(opened, file)) {
      writePid(opened.get());
      return FileLock(opened.release());
    }
  }
}

std::optional<FileLock> FileLock::tryAcquire(const std::filesystem::path& file) {
  makePrivateFolder(file.parent_path());
  while (true) {
    FileDescriptor opened = openLockFile(file);
    if (!lockUntil(opened, file, Clock::time_point::min())) {
      return std::nullopt;
    }
    if (isStillInPlace(opened, file)) {
      writePid(opened.get());
      return FileLock(opened.release());
    }
  }
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

}  // namespace vfpass::state
