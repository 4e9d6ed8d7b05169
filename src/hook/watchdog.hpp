#pragma once

#include <chrono>

namespace vfpass::hook {

/// Terminates the process after this time with one line on stderr and this exit code:
/// libvirt has no timeout for hooks and holds the domain's lock while one runs.
void startWatchdog(std::chrono::seconds timeout, int exitCode);

}  // namespace vfpass::hook
