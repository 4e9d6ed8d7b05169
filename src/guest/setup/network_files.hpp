#pragma once

#include <string>
#include <vector>

#include "vfpass/setup/setup_plan.hpp"
#include "vfpass/setup/setup_view.hpp"

namespace vfpass::setup {

/// The software that sets addresses in the guest.
enum class NetworkTool { netplan, networkManager, networkd, ifupdown, plain };

/// Depends on what runs in the guest. netplan only generates configuration for NetworkManager or
/// systemd-networkd, so it counts only if one of them runs.
NetworkTool networkToolOf(const SetupView& view);

/// `netplan`, `NetworkManager`, `systemd-networkd`, `ifupdown` or `ip`.
std::string toString(NetworkTool tool);

/// A port and its interface in the guest.
struct PlacedPort {
  WantedPort wanted;
  SetupNetdev netdev;
  std::string name;  ///< the interface's name from the guest's next start, for files
};

/// A file that guest-setup wants to write.
struct WantedFile {
  std::string path;
  std::string content;
  unsigned mode = 0644;
  std::string reason;
};

/// First line of the files that guest-setup writes.
inline constexpr const char* writtenBy =
    "# Written by `vfpass guest-setup` on the host; --undo removes it.\n";

/// Files that make the addresses and MTUs of these ports persistent; none for `plain` without
/// systemd.
std::vector<WantedFile> networkFiles(NetworkTool tool, const std::vector<PlacedPort>& ports,
                                     const SetupView& view, const Uuid& domain);

/// The file that makes udev name this port's interface `port.name` whenever it appears.
WantedFile linkFile(const PlacedPort& port);

}  // namespace vfpass::setup
