#pragma once

#include <sys/types.h>

#include <vector>

#include "vfpass/base/deadline.hpp"

namespace vfpass {

/// Waits until one of these processes has exited, without reaping it. False: none has when the
/// deadline is over. True at once if one does not exist or cannot be waited for, so that the
/// caller asks waitpid(2). A pidfd becomes readable when its process exits (Linux 5.3).
bool waitForExit(const std::vector<pid_t>& processes, const Deadline& deadline);

}  // namespace vfpass
