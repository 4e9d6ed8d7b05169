#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/identifiers.hpp"

namespace vfpass::host {

/// What a QEMU process says of its guest on its command line. A process chooses its command line
/// itself.
struct QemuGuest {
  std::string name;          ///< of `-name guest=NAME`: 128 bytes of it, printable; empty: none
  std::optional<Uuid> uuid;  ///< of `-uuid UUID`
};

/// `commandLine` is that of /proc/PID/cmdline: a zero byte behind each argument.
QemuGuest parseQemuGuest(std::string_view commandLine);

}  // namespace vfpass::host
