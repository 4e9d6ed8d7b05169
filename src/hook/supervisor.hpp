#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace vfpass::hook {

/// Ends the process after this time with one line on stderr, this entry in the journal
/// (events/journal_event.hpp) and this exit code: libvirt has no timeout for hooks and holds the
/// domain's lock while one runs. A worker is killed first.
void startWatchdog(std::chrono::seconds timeout, int exitCode, const std::string& entry);

/// Runs `work` in a child process, passes on what that writes to stderr, and returns its result.
/// Meanwhile this process only waits: a child that hangs in the kernel, such as in open(2) on a
/// frozen file system, cannot be killed, and SIGALRM does not interrupt it either. The child has
/// none of libvirt's descriptors, because libvirt waits until every copy of the hook's stderr is
/// closed. It dies with this process. Throws Error if it cannot be started or is killed.
int superviseWorker(const std::function<int()>& work);

/// Drops privileges that the hook never needs, before it parses untrusted XML. For this process and
/// its children this drops all capabilities except those in supervisor.cpp, also from the bounding
/// set (modprobe gets CAP_SYS_MODULE, which is not effective here), and disables new privileges
/// through exec, core dumps, and ptrace by others. Returns 0, or the errno of the first call that
/// failed; the other calls are made all the same.
int reducePrivileges() noexcept;

}  // namespace vfpass::hook
