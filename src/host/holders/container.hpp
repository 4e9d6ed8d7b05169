#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass::host {

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
