#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace vfpass::host {

/// Runs a program that only looks, and returns what it wrote to stdout and stderr, at most about
/// 1 MiB: what it writes beyond that ends it. `command` is its absolute path and its arguments; no
/// shell, no stdin, an environment of PATH and LC_ALL=C. Nobody waits for it beyond the deadline
/// (one that hangs in the kernel cannot be killed), and it is ended soon after. nullopt: it cannot
/// be run, or was not done in time. How it ended is not said: judge it by what it wrote.
std::optional<std::string> programOutput(const std::vector<std::string>& command,
                                         std::chrono::milliseconds deadline);

}  // namespace vfpass::host
