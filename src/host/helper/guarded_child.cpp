#include "helper/guarded_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <vector>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

constexpr std::string_view prefix = "vf";
constexpr std::size_t longestName = 15;
constexpr std::size_t packedDigits = 12;

// Domain, bus, and device and function (as in a routing ID), without separators.
std::string packed(const PciAddress& device) {
  const std::array<std::uint8_t, 6> bytes{
      static_cast<std::uint8_t>(device.domain >> 24U),
      static_cast<std::uint8_t>(device.domain >> 16U),
      static_cast<std::uint8_t>(device.domain >> 8U),
      static_cast<std::uint8_t>(device.domain),
      device.bus,
      static_cast<std::uint8_t>((device.slot << 3U) | device.function)};
  return hexBytes(bytes, "");
}

std::optional<PciAddress> unpacked(std::string_view digits) {
  const auto value = digits.size() == packedDigits ? parseNumber(digits, 16) : std::nullopt;
  if (!value) {
    return std::nullopt;
  }
  const auto routing = static_cast<unsigned>(*value & 0xffU);
  return PciAddress{
      static_cast<std::uint32_t>(*value >> 16U), static_cast<std::uint8_t>((*value >> 8U) & 0xffU),
      static_cast<std::uint8_t>(routing >> 3U), static_cast<std::uint8_t>(routing & 7U)};
}

}  // namespace

std::string taskName(const PciAddress& device) {
  const std::string name = std::string(prefix) + toString(device);
  return name.size() <= longestName ? name : std::string(prefix) + packed(device);
}

std::optional<PciAddress> deviceInTaskName(std::string_view name) {
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(prefix.size());
  const auto device =
      rest.find(':') == std::string_view::npos ? unpacked(rest) : parsePciAddress(rest);
  return device && taskName(*device) == name ? device : std::nullopt;
}

namespace {

// Since Linux 6.3; linux/memfd.h of Debian 12 lacks it. Without it the call fails with EACCES where
// the sysctl vm.memfd_noexec is 2.
constexpr unsigned noExecution = 8U;

// A guarded child opens its mark when it has at most three other descriptors. A process of another
// user may have the name of a helper and any number of descriptors, which must cost nothing.
constexpr int searchedDescriptors = 8;

int createMark(const char* name) {
  const int file = ::memfd_create(name, MFD_CLOEXEC | noExecution);
  return file < 0 && errno == EINVAL ? ::memfd_create(name, MFD_CLOEXEC) : file;
}

// The file system of all anonymous files of the kernel, which nobody can mount (shm_mnt).
std::optional<dev_t> fileSystemOfMarks() {
  const FileDescriptor sample(createMark(idleTaskName));
  struct stat status {};
  return sample && ::fstat(sample.get(), &status) == 0 ? std::optional(status.st_dev)
                                                       : std::nullopt;
}

// The owner is the user who created the file; root of another user namespace has another ID here.
bool isMark(const Root& root, const std::string& link, dev_t fileSystem) {
  const FileDescriptor file = root.open(link, O_PATH);
  struct statx status {};
  return file &&
         ::statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &status) == 0 &&
         makedev(status.stx_dev_major, status.stx_dev_minor) == fileSystem &&
         (status.stx_uid == 0 || status.stx_uid == ::geteuid());
}

}  // namespace

CallMark::CallMark(const char* name) {
  ::prctl(PR_SET_NAME, name);
  file_ = createMark(name);
  error_ = file_ < 0 ? errno : 0;
}

CallMark::~CallMark() {
  if (file_ >= 0) {
    ::close(file_);
  }
  ::prctl(PR_SET_NAME, idleTaskName);
}

std::optional<PciAddress> markedDevice(const Root& root, const std::string& process,
                                       std::string_view name) {
  const auto device = deviceInTaskName(name);
  const auto fileSystem = device && root.isLive() ? fileSystemOfMarks() : std::nullopt;
  if (!device || (root.isLive() && !fileSystem)) {
    return std::nullopt;
  }
  const std::string target = "/memfd:" + std::string(name) + " (deleted)";
  for (int descriptor = 0; descriptor < searchedDescriptors; ++descriptor) {
    const std::string link = "proc/" + process + "/fd/" + std::to_string(descriptor);
    // A captured tree has the text of links but not the files.
    if (root.linkTarget(link) == target && (!fileSystem || isMark(root, link, *fileSystem))) {
      return device;
    }
  }
  return std::nullopt;
}

namespace {

// Before Linux 5.9, which added close_range(2), close all descriptors up to the limit one by one.
void closeBetween(unsigned first, unsigned last) {
  if (first > last || ::close_range(first, last, 0) == 0) {
    return;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned descriptor = first; descriptor <= last && descriptor < limit.rlim_cur;
       ++descriptor) {
    ::close(static_cast<int>(descriptor));
  }
}

void closeAllBut(int one, int other) {
  const auto low = static_cast<unsigned>(std::min(one, other));
  const auto high = static_cast<unsigned>(std::max(one, other));
  if (low > 0) {
    closeBetween(0, low - 1);
  }
  closeBetween(low + 1, high - 1);
  closeBetween(high + 1, ~0U);
}

// Guarded children for which nobody has waited yet. One that hangs becomes a child of init when
// this process ends.
class Children {
 public:
  void add(pid_t child) {
    const std::lock_guard lock(mutex_);
    running_.push_back(child);
  }

  // One waitpid(2) for each: other code waits for the other children of this process. An error
  // (ECHILD) means that this process ignores SIGCHLD.
  void reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(running_, [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; });
  }

  bool has(pid_t child) {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(running_, child) != running_.end();
  }

  // Another process can have the number of one that has been waited for.
  void kill(pid_t child) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(running_, child) != running_.end()) {
      ::kill(child, SIGKILL);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> running_;
};

Children& children() {
  static Children all;
  return all;
}

[[noreturn]] void runChild(int pipe, int kept, const std::function<void(int)>& operation) {
  ::setsid();  // signals from the terminal or to the process group do not reach it
  closeAllBut(pipe, kept < 0 ? pipe : kept);
  // Keeping the working directory would prevent unmounting its file system.
  if (::chdir("/") != 0) {
    ::_exit(1);
  }
  ::prctl(PR_SET_NAME, idleTaskName);
  operation(pipe);
  ::_exit(0);
}

// What the child has already written is read even after the deadline, but not without end.
constexpr std::chrono::milliseconds grace{500};

// False at the end of the pipe, and when `consume` returns false.
bool readSome(int pipe, const std::function<bool(std::string_view)>& consume) {
  std::array<char, 65536> buffer;  // NOLINT: a pipe's capacity; only the initialized part is used
  const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
  if (count < 0) {
    return errno == EINTR;
  }
  return count > 0 && consume({buffer.data(), static_cast<std::size_t>(count)});
}

}  // namespace

void reapGuarded() { children().reap(); }

bool endGuarded(pid_t child, std::chrono::milliseconds timeout) {
  children().kill(child);
  return pollUntil(Deadline(timeout), [child] {
    reapGuarded();
    return !children().has(child);
  });
}

pid_t startGuarded(int pipe, int kept, const std::function<void(int)>& operation) {
  reapGuarded();
  // _Fork instead of fork: library handlers must not run, since other threads may hold their locks.
  const pid_t child = ::_Fork();
  if (child == 0) {
    runChild(pipe, kept, operation);
  }
  if (child < 0) {
    throw Error("cannot start a helper process: " + errnoText(errno));
  }
  children().add(child);
  return child;
}

bool writeAll(int descriptor, const void* bytes, std::size_t length) {
  const char* position = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t count = ::write(descriptor, position, length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    position += count;
    length -= static_cast<std::size_t>(count);
  }
  return true;
}

GuardedReply runGuarded(std::chrono::milliseconds timeout, int kept,
                        const std::function<void(int replyPipe)>& operation,
                        const std::function<bool(std::string_view bytes)>& consume) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error("cannot create a pipe: " + errnoText(errno));
  }
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  GuardedReply reply;
  reply.child = startGuarded(writing.get(), kept, operation);
  writing.reset();

  const Deadline deadline(timeout);
  const Deadline last(timeout + grace);
  pollfd wait{reading.get(), POLLIN, 0};
  while (true) {
    const int ready = ::poll(&wait, 1, deadline.pollTimeout());
    if (ready > 0 && !readSome(reading.get(), consume)) {
      reply.finished = true;
      return reply;
    }
    if (deadline.over() && (ready <= 0 || last.over())) {
      return reply;
    }
  }
}

GuardedReply runGuarded(std::chrono::milliseconds timeout, int kept,
                        const std::function<void(int replyPipe)>& operation, std::size_t limit) {
  std::string bytes;
  GuardedReply reply = runGuarded(timeout, kept, operation, [&](std::string_view piece) {
    bytes += piece;
    return bytes.size() <= limit;
  });
  reply.bytes = std::move(bytes);
  return reply;
}

}  // namespace vfpass::host
