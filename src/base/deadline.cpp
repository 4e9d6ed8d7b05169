#include "vfpass/base/deadline.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass {

bool waitForExit(const std::vector<pid_t>& processes, const Deadline& deadline) {
  std::vector<FileDescriptor> handles;
  std::vector<pollfd> waits;
  for (const pid_t process : processes) {
    handles.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    if (!handles.back()) {
      return true;
    }
    waits.push_back({handles.back().get(), POLLIN, 0});
  }
  while (::poll(waits.data(), waits.size(), deadline.pollTimeout()) <= 0) {  // EINTR, or over
    if (deadline.over()) {
      return false;
    }
  }
  return true;
}

}  // namespace vfpass
