#pragma once

namespace vfpass::hook {

/// Ends the process after so many seconds with one line on stderr and this exit code, whatever it
/// is doing: libvirt has no time-out for hooks, and holds the domain's lock for as long as one
/// runs.
void startWatchdog(unsigned seconds, int exitCode);

}  // namespace vfpass::hook
