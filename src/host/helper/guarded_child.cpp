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

// The first child exits at once, so that it can be waited for and the second one is an orphan.
[[noreturn]] void runChild(int pipe, int kept, const std::function<void(int)>& operation) {
  ::setsid();
  const pid_t second = ::_Fork();
  if (second != 0) {
    ::_exit(second < 0 ? 1 : 0);
  }
  closeAllBut(pipe, kept < 0 ? pipe : kept);
  // Keeping the working directory would prevent unmounting its file system.
  if (::chdir("/") != 0) {
    ::_exit(1);
  }
  ::prctl(PR_SET_NAME, idleTaskName);
  operation(pipe);
  ::_exit(0);
}

// False at the end of the pipe, and when more than `limit` bytes were read.
bool readSome(int pipe, std::string& bytes, std::size_t limit) {
  std::array<char, 65536> buffer;  // NOLINT: a pipe's capacity; only the initialized part is used
  const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
  if (count < 0) {
    return errno == EINTR;
  }
  bytes.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 && bytes.size() <= limit;
}

}  // namespace

void startGuarded(int pipe, int kept, const std::function<void(int)>& operation) {
  // _Fork instead of fork: library handlers must not run, since other threads may hold their locks.
  const pid_t first = ::_Fork();
  if (first == 0) {
    runChild(pipe, kept, operation);
  }
  int status = 0;
  pid_t waited = first;
  while (first > 0 && (waited = ::waitpid(first, &status, 0)) < 0 && errno == EINTR) {
  }
  // ECHILD: this process ignores SIGCHLD; the pipe reports whether the child works.
  if (first < 0 || (waited == first && status != 0)) {
    throw Error("cannot start a helper process: " + errnoText(first < 0 ? errno : EAGAIN));
  }
}

void writeAll(int descriptor, const void* bytes, std::size_t length) {
  const char* position = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t count = ::write(descriptor, position, length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return;
    }
    position += count;
    length -= static_cast<std::size_t>(count);
  }
}

GuardedReply runGuarded(std::chrono::milliseconds timeout, int kept,
                        const std::function<void(int replyPipe)>& operation, std::size_t limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error("cannot create a pipe: " + errnoText(errno));
  }
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  startGuarded(writing.get(), kept, operation);
  writing.reset();

  const Deadline deadline(timeout);
  GuardedReply reply;
  pollfd wait{reading.get(), POLLIN, 0};
  while (true) {
    const int ready = ::poll(&wait, 1, deadline.pollTimeout());
    if (ready > 0 && !readSome(reading.get(), reply.bytes, limit)) {
      reply.finished = true;
      return reply;
    }
    if (ready <= 0 && deadline.over()) {
      return reply;
    }
  }
}

}  // namespace vfpass::host
