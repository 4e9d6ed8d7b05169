#include "helper/guarded_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <vector>

#include "helper/task_name.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
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
