#pragma once

namespace vfpass::hook {

/// Drops privileges that the hook never needs, before it parses untrusted XML. For this process and
/// its children this drops all capabilities except those in privileges.cpp, also from the bounding
/// set (modprobe gets CAP_SYS_MODULE, which is not effective here), and disables new privileges
/// through exec, core dumps, and ptrace by others. Returns 0, or the errno of the first call that
/// failed; the other calls are made all the same.
int reducePrivileges() noexcept;

}  // namespace vfpass::hook
