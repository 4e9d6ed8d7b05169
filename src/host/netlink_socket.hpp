#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace vfpass::host {

/// Calls for guarded children: none of them allocates memory or throws.

/// A netlink socket, or -1 with errno.
int openNetlink(int protocol);

/// Sends a request to the kernel; false with errno.
bool sendNetlink(int socket, std::string_view request);

/// Where a datagram goes.
struct NetlinkRoom {
  char* start;
  std::size_t length;
};

/// The next datagram's length, or -1 with errno. What does not come from the kernel is passed over.
ssize_t receiveNetlink(int socket, const NetlinkRoom& room);

/// Whether this datagram ends a dump. The message that does can share it with others; a damaged one
/// ends it, too.
bool endsDump(const char* bytes, std::size_t length);

}  // namespace vfpass::host
