#include "netlink/netlink_socket.hpp"

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace vfpass::host {

namespace {

// The kernel replies within sendto(2), or as fast as the reply is read. Without this timeout, a
// child would wait forever for a message that is never answered, long after the caller's own
// deadline.
constexpr timeval answerTimeout{30, 0};

bool getName(int socket, int netdevIndex, ifreq& request) {
  request.ifr_ifindex = netdevIndex;
  return ::ioctl(socket, SIOCGIFNAME, &request) == 0;
}

}  // namespace

int openNetlink(int protocol) {
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (socket < 0) {
    return -1;  // with the errno of this call
  }
  const int on = 1;
  // Request the driver's message with errors, and no echo of the request (both since Linux 4.12).
  ::setsockopt(socket, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  ::setsockopt(socket, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &answerTimeout, sizeof answerTimeout);
  return socket;
}

bool sendNetlink(int socket, std::string_view request) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  return ::sendto(socket, request.data(), request.size(), 0,
                  reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) >= 0;
}

ssize_t receiveNetlink(int socket, const NetlinkRoom& room) {
  while (true) {
    sockaddr_nl sender{};
    socklen_t senderLength = sizeof sender;
    const ssize_t length = ::recvfrom(socket, room.start, room.length, MSG_TRUNC,
                                      reinterpret_cast<sockaddr*>(&sender), &senderLength);
    if (length < 0 && errno != EINTR) {
      return -1;
    }
    if (length > static_cast<ssize_t>(room.length)) {
      errno = EMSGSIZE;
      return -1;
    }
    if (length >= 0 && sender.nl_pid == 0) {
      return length;
    }
  }
}

bool isDetached(int netdevIndex) {
  // These ioctls work on sockets of every family; our units allow only this one and AF_UNIX.
  const int socket = openNetlink(NETLINK_ROUTE);
  ifreq asked{};
  ifreq after{};
  ethtool_value flags{ETHTOOL_GFLAGS, 0};
  bool detached = false;
  if (socket >= 0 && getName(socket, netdevIndex, asked)) {
    asked.ifr_data = reinterpret_cast<char*>(&flags);
    detached =
        ::ioctl(socket, SIOCETHTOOL, &asked) != 0 && errno == ENODEV &&
        getName(socket, netdevIndex, after) &&
        std::strncmp(asked.ifr_name, after.ifr_name, IFNAMSIZ) == 0;  // not renamed meanwhile
  }
  ::close(socket);
  return detached;
}

bool endsDump(const char* bytes, std::size_t length) {
  std::size_t at = 0;
  while (length - at >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, bytes + at, sizeof header);
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR ||
        header.nlmsg_len < sizeof header) {
      return true;
    }
    const std::size_t aligned = NLMSG_ALIGN(std::size_t{header.nlmsg_len});
    if (aligned >= length - at) {
      return false;
    }
    at += aligned;
  }
  return true;
}

}  // namespace vfpass::host
