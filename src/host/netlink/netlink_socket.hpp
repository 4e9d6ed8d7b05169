#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace vfpass::host {

/// For guarded children: these functions neither allocate memory nor throw.

/// A netlink socket, or -1 with errno.
int openNetlink(int protocol);

/// Sends a request to the kernel; false with errno.
bool sendNetlink(int socket, std::string_view request);

/// The buffer for a datagram.
struct NetlinkRoom {
  char* start;
  std::size_t length;
};

/// The next datagram's length, or -1 with errno. Datagrams not from the kernel are skipped.
ssize_t receiveNetlink(int socket, const NetlinkRoom& room);

/// Whether the driver has detached this netdev, as mlx5 does while it resets the card, and for good
/// when a change of the eswitch mode has failed on its way back, too. Asks with an ethtool command
/// that the kernel refuses for such a netdev (ENODEV, __dev_ethtool) and answers without the driver
/// otherwise. It does not check this before it passes on requests for VFs (do_setvfinfo,
/// rtnl_fill_vf) and data centre bridging (dcb_doit). A netdev that does not exist is not detached.
bool isDetached(int netdevIndex);

/// Whether this datagram ends a dump. It may contain other messages before the final one. A
/// malformed message also ends the dump.
bool endsDump(const char* bytes, std::size_t length);

}  // namespace vfpass::host
