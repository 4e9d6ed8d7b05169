#pragma once

#include <sys/wait.h>

#include <cerrno>
#include <chrono>

#include "helper/guarded_child.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::host {

/// True once this process has no child, not even a zombie; false after five seconds.
inline bool hasNoChild() {
  return pollUntil(Deadline(std::chrono::milliseconds(5000)), [] {
    reapGuarded();
    return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
  });
}

}  // namespace vfpass::host
