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

/// The container that a process runs in.
struct Container {
  std::string runtime;  ///< docker, podman, CRI-O, containerd, LXC
  std::string id;       ///< the first 12 digits of its ID; LXC: its name; printable

  auto operator<=>(const Container&) const = default;
};

/// Identifies the container from a process's control groups, the text of /proc/PID/cgroup. nullopt:
/// not in a known type of container.
std::optional<Container> containerIn(std::string_view cgroups);

/// The system service that a process belongs to, such as `ollama.service`; printable. Empty for
/// processes of a user's session and for scopes, which `systemctl stop` cannot address as services.
std::string systemServiceIn(std::string_view cgroups);

}  // namespace vfpass::host
