#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <fstream>

#include "helper/guarded_child.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::host {

/// True once this process has no child, not even a zombie; false after this time.
inline bool hasNoChild(std::chrono::milliseconds time = std::chrono::milliseconds(5000)) {
  return pollUntil(Deadline(time), [] {
    reapGuarded();
    return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
  });
}

/// Kills the children that this thread has started and that still run.
inline void killChildren() {
  std::ifstream children("/proc/thread-self/children");
  for (pid_t child = 0; children >> child;) {
    ::kill(child, SIGKILL);
  }
}

}  // namespace vfpass::host
