#pragma once

namespace vfpass::hook {

/// Gives up what the hook never needs, before it parses XML that others wrote. For this process and
/// its children: all capabilities but those in privileges.cpp (modprobe gets CAP_SYS_MODULE, which
/// is not in effect here), also from the bounding set; new privileges by exec; core dumps and
/// ptrace by others. Returns 0, or the errno of the call that failed; what could be given up is
/// gone then, too.
int reducePrivileges() noexcept;

}  // namespace vfpass::hook
