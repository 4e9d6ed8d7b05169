#pragma once

namespace vfpass::hook {

/// Terminates the process after this many seconds with one line on stderr and this exit code:
/// libvirt has no timeout for hooks and holds the domain's lock while one runs.
void startWatchdog(unsigned seconds, int exitCode);

}  // namespace vfpass::hook
