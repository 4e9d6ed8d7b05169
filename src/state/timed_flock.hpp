#pragma once

#include <chrono>

namespace vfpass::state {

/// Takes an exclusive flock, waiting in the kernel until the deadline. False when it passed.
/// Throws std::system_error when the lock cannot be had for another reason.
bool flockUntil(int descriptor, std::chrono::steady_clock::time_point deadline);

}  // namespace vfpass::state
