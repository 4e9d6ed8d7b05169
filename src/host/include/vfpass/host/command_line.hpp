#pragma once

#include <string>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// The command line of the process with this PID, at most 64 KiB: each argument ends with a zero
/// byte. Empty if it ends, or if the kernel does not answer within a second: reading it takes the
/// process's mmap lock, which a process that hangs in the kernel may hold for ever
/// (get_mm_cmdline).
std::string readCommandLine(const Root& root, const std::string& process);

}  // namespace vfpass::host
