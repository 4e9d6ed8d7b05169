#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/identifiers.hpp"

namespace vfpass::host {

/// The guest named on a QEMU command line. A process controls its own command line, so this is
/// untrusted.
struct QemuGuest {
  std::string name;          ///< of `-name guest=NAME`: at most 128 bytes, printable; empty: none
  std::optional<Uuid> uuid;  ///< of `-uuid UUID`
};

/// `commandLine` is the content of /proc/PID/cmdline: each argument ends with a zero byte.
QemuGuest parseQemuGuest(std::string_view commandLine);

}  // namespace vfpass::host
