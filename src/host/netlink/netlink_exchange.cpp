#include "netlink/netlink_exchange.hpp"

#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "helper/guarded_child.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/port_fault.hpp"

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

namespace {

// A link with its VF list far exceeds a page, and the 64 KiB at which that list wraps. Longer
// replies than this are refused.
constexpr std::size_t replyLimit = std::size_t{512} * 1024;

// Everything down to `converse` runs in the guarded child: no allocations, no exceptions.
ssize_t receiveDump(int socket, std::string& buffer) {
  std::size_t filled = 0;
  while (true) {
    const ssize_t length = receiveNetlink(socket, {buffer.data() + filled, buffer.size() - filled});
    if (length < 0) {
      return -1;
    }
    const auto received = static_cast<std::size_t>(length);
    if (endsDump(buffer.data() + filled, received)) {
      return static_cast<ssize_t>(filled + received);
    }
    filled += received;
  }
}

enum class Answer { datagram, dump, acknowledgement };

struct Exchange {
  int protocol;
  const std::string& bytes;
  Answer answer;
  int netdev;  // see ExchangePurpose
};

ssize_t converse(const Exchange& request, std::string& buffer) {
  if (request.netdev != 0 && isDetached(request.netdev)) {
    errno = ENODEV;
    return -1;
  }
  const int socket = openNetlink(request.protocol);
  if (socket < 0 || !sendNetlink(socket, request.bytes)) {
    return -1;
  }
  return request.answer == Answer::dump ? receiveDump(socket, buffer)
                                        : receiveNetlink(socket, {buffer.data(), buffer.size()});
}

[[noreturn]] void throwUnanswered(const ExchangePurpose& purpose,
                                  std::chrono::milliseconds deadline, const char* consequence) {
  throw TimeoutError(purpose.object + ": " + purpose.verb + ": no reply from the kernel within " +
                         durationText(deadline) + consequence,
                     "check the kernel log (dmesg) for a driver or firmware that hangs");
}

// Runs in the parent again.
std::string exchange(int protocol, const std::string& request, Answer answer,
                     const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  // Everything that the child needs is allocated before it starts.
  std::string buffer(replyLimit, '\0');
  const std::string name = purpose.device ? taskName(*purpose.device) : "";
  const auto reply = runGuarded(deadline, -1, [&](int pipe) {
    std::optional<CallMark> mark;
    if (purpose.device) {
      mark.emplace(name.c_str());
    }
    int error = mark ? mark->error() : 0;
    const ssize_t length =
        error == 0 ? converse({protocol, request, answer, purpose.netdev}, buffer) : -1;
    error = error == 0 && length < 0 ? errno : error;
    mark.reset();  // the call has returned
    writeAll(pipe, &error, sizeof error);
    writeAll(pipe, buffer.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  });
  // The reply is the errno of the exchange, then the datagrams.
  if (!reply.finished && answer == Answer::acknowledgement) {
    throwUnanswered(purpose, deadline, "; the change may still take effect");
  }
  if (!reply.finished) {
    // The child would wait for an answer that nobody reads. Only the child of a read is killed: in
    // a change, a kill can end the driver's wait for a lock, and with it the change half-way.
    endGuarded(reply.child, std::chrono::milliseconds(0));
    throwNoReply(purpose, deadline);
  }
  int error = ECHILD;  // the child was killed before it replied
  if (reply.bytes.size() >= sizeof error) {
    std::memcpy(&error, reply.bytes.data(), sizeof error);
  }
  if (error == ENODEV && purpose.netdev != 0) {
    const PortFault fault = detachedNetdev();
    throwFailed(purpose, "it " + fault.what, fault.remedy);
  }
  if (error != 0) {
    throw Error(purpose.object + ": " + purpose.verb + " over netlink failed: " + errnoText(error));
  }
  return reply.bytes.substr(sizeof error);
}

bool hasCapability(unsigned number) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[number / 32].effective >> (number % 32) & 1U) != 0;
}

// Only the initial user namespace maps every user to itself (user_namespaces(7)).
bool inInitialUserNamespace() {
  const std::string map = Root().readText("proc/self/uid_map").value_or("");
  return map.ends_with(" 4294967295");
}

}  // namespace

std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  return exchange(protocol, request, Answer::datagram, purpose, deadline);
}

Acknowledgement sendChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                           std::chrono::milliseconds deadline) {
  const std::string reply = exchange(protocol, request, Answer::acknowledgement, purpose, deadline);
  if (const auto acknowledgement = parseAcknowledgement(reply)) {
    return *acknowledgement;
  }
  throwNoData(purpose, reply);
}

void requireChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                   std::chrono::milliseconds deadline, std::string (*remedyFor)(int error)) {
  const Acknowledgement answer = sendChange(protocol, request, purpose, deadline);
  if (answer.error != 0) {
    throwFailed(purpose, reasonOf(answer), remedyFor(answer.error));
  }
}

void throwNoReply(const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  throwUnanswered(purpose, deadline, "");
}

void throwFailed(const ExchangePurpose& purpose, const std::string& reason,
                 const std::string& remedy) {
  throw Error(purpose.object + ": " + purpose.verb + " failed: " + reason, remedy);
}

void throwNoData(const ExchangePurpose& purpose, std::string_view reply) {
  const auto refusal = parseAcknowledgement(reply);
  throwFailed(purpose, refusal ? reasonOf(*refusal) : "invalid reply from the kernel");
}

std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline) {
  return exchange(protocol, request, Answer::dump, purpose, deadline);
}

bool mayConfigureLinks() { return hasCapability(CAP_NET_ADMIN) && inInitialUserNamespace(); }

}  // namespace vfpass::host
