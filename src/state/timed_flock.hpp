#pragma once

#include <chrono>

namespace vfpass::state {

/// Takes an exclusive flock, waiting in the kernel until the deadline. Returns false if it has
/// passed. Throws std::system_error if flock(2) fails.
bool flockUntil(int descriptor, std::chrono::steady_clock::time_point deadline);

}  // namespace vfpass::state
