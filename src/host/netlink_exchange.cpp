#include "netlink_exchange.hpp"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "guarded_child.hpp"
#include "kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

// A link with its VF list goes far beyond a page, and beyond the 64 KiB at which that list wraps; a
// reply that is longer than this is refused.
constexpr std::size_t replyLimit = 512U * 1024U;

// Down to `converse`, all of this runs in the guarded child: no allocation, no exception.
int openSocket(int protocol) {
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  const int on = 1;
  // The driver's own words in a refusal, without an echo of the request (both since Linux 4.12).
  ::setsockopt(socket, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  ::setsockopt(socket, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  return socket;
}

struct Room {
  char* start;
  std::size_t length;
};

// The length, or -1 with errno. What does not come from the kernel is passed over.
ssize_t receive(int socket, const Room& room) {
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

// The message that ends a dump can share its datagram with others. A damaged one ends it, too.
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

ssize_t receiveDump(int socket, std::string& buffer) {
  std::size_t filled = 0;
  while (true) {
    const ssize_t length = receive(socket, {buffer.data() + filled, buffer.size() - filled});
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

enum class Answer { datagram, dump };

ssize_t converse(int protocol, const std::string& request, Answer answer, std::string& buffer) {
  const int socket = openSocket(protocol);
  if (socket < 0) {
    return -1;
  }
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const ssize_t sent = ::sendto(socket, request.data(), request.size(), 0,
                                reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) {
    return -1;
  }
  return answer == Answer::dump ? receiveDump(socket, buffer)
                                : receive(socket, {buffer.data(), buffer.size()});
}

// The parent's half again.
std::string exchange(int protocol, const std::string& request, Answer answer,
                     const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  std::string buffer(replyLimit, '\0');
  const auto reply = runGuarded(deadline, -1, [&](int pipe) {
    const ssize_t length = converse(protocol, request, answer, buffer);
    const int error = length < 0 ? errno : 0;
    writeAll(pipe, &error, sizeof error);
    writeAll(pipe, buffer.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  });
  const std::string what = purpose.object + ": " + purpose.verb;
  if (!reply.finished) {
    throw TimeoutError(what + " did not return within " + durationText(deadline) +
                           "; what was sent may still take effect",
                       "See the kernel log (dmesg) for a driver or firmware that hangs.");
  }
  int error = ECHILD;  // the child was killed before it could say anything
  if (reply.bytes.size() >= sizeof error) {
    std::memcpy(&error, reply.bytes.data(), sizeof error);
  }
  if (error != 0) {
    throw Error(what + " over netlink failed: " + errnoText(error));
  }
  return reply.bytes.substr(sizeof error);
}

}  // namespace

std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  return exchange(protocol, request, Answer::datagram, purpose, deadline);
}

std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline) {
  return exchange(protocol, request, Answer::dump, purpose, deadline);
}

}  // namespace vfpass::host
