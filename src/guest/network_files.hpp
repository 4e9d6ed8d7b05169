#pragma once

#include <string>
#include <vector>

#include "vfpass/guest/setup_view.hpp"
#include "vfpass/guest/setup_wish.hpp"

namespace vfpass::guest {

/// Who sets addresses in the guest.
enum class NetworkTool { netplan, networkManager, networkd, ifupdown, plain };

/// By what really runs there. netplan only writes for the other two: with neither it does nothing.
NetworkTool networkToolOf(const SetupView& view);

/// For people: `netplan`, `NetworkManager`, `systemd-networkd`, `ifupdown`, `ip`.
std::string toString(NetworkTool tool);

/// A port with the guest's interface that it is.
struct PlacedPort {
  WantedPort wanted;
  SetupNetdev netdev;
};

/// A file as it is to be.
struct WantedFile {
  std::string path;
  std::string content;
  unsigned mode = 0644;
  std::string reason;
};

/// What makes the addresses and MTUs of these ports last; none where nothing can (plain, without
/// systemd).
std::vector<WantedFile> networkFiles(NetworkTool tool, const std::vector<PlacedPort>& ports,
                                     const SetupView& view, const Uuid& domain);

}  // namespace vfpass::guest
