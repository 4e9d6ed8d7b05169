#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace vfpass::host {

/// Runs a read-only program and returns its output on stdout and stderr, at most `limit` bytes
/// and one buffer. `command` is its absolute path and its arguments; there is no shell, no stdin,
/// and the environment is PATH and LC_ALL=C. A program that writes more, or has not finished at the
/// deadline, is killed with the processes that it has started; this function does not wait for its
/// end, because a program that hangs in the kernel cannot be killed. The kernel kills it if this
/// process ends. nullopt: the program cannot be run, or did not finish in time. The exit status is
/// not returned.
std::optional<std::string> programOutput(const std::vector<std::string>& command,
                                         std::chrono::milliseconds deadline,
                                         std::size_t limit = std::size_t{1} << 20U);

}  // namespace vfpass::host
