#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass::host {

/// The command line of the process with this PID, at most 64 KiB: each argument ends with a zero
/// byte. Empty if it ends, or if the kernel does not answer within a second: reading it takes the
/// process's mmap lock, which a process that hangs in the kernel may hold for ever
/// (get_mm_cmdline).
std::string readCommandLine(const Root& root, const std::string& process);

/// The arguments in such a text.
std::vector<std::string> argumentsOf(std::string_view commandLine);

/// The guest named on a QEMU command line. A process controls its own command line, so this is
/// untrusted.
struct QemuGuest {
  std::string name;          ///< of `-name guest=NAME`: at most 128 bytes, printable; empty: none
  std::optional<Uuid> uuid;  ///< of `-uuid UUID`
};

QemuGuest parseQemuGuest(std::string_view commandLine);

}  // namespace vfpass::host
