#include "netlink/netlink_exchange.hpp"

#include <cerrno>
#include <cstring>
#include <optional>

#include "helper/call_mark.hpp"
#include "helper/guarded_child.hpp"
#include "helper/task_name.hpp"
#include "netlink/netlink_socket.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::host {
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

enum class Answer { datagram, dump };

struct Request {
  int protocol;
  const std::string& bytes;
  Answer answer;
  int netdev;  // see ExchangePurpose
};

ssize_t converse(const Request& request, std::string& buffer) {
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

// Runs in the parent again.
std::string exchange(int protocol, const std::string& request, Answer answer,
                     const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
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
  if (!reply.finished) {
    throwNoReply(purpose, deadline);
  }
  int error = ECHILD;  // the child was killed before it replied
  if (reply.bytes.size() >= sizeof error) {
    std::memcpy(&error, reply.bytes.data(), sizeof error);
  }
  if (error == ENODEV && purpose.netdev != 0) {
    const PortFault fault = detachedNetdev();
    throw Error(purpose.object + ": " + purpose.verb + " failed: it " + fault.what, fault.remedy);
  }
  if (error != 0) {
    throw Error(purpose.object + ": " + purpose.verb + " over netlink failed: " + errnoText(error));
  }
  return reply.bytes.substr(sizeof error);
}

}  // namespace

std::string exchangeNetlink(int protocol, const std::string& request,
                            const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  return exchange(protocol, request, Answer::datagram, purpose, deadline);
}

Acknowledgement sendChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                           std::chrono::milliseconds deadline) {
  const std::string reply = exchangeNetlink(protocol, request, purpose, deadline);
  if (const auto acknowledgement = parseAcknowledgement(reply)) {
    return *acknowledgement;
  }
  throwNoData(purpose, reply);
}

void requireChange(int protocol, const std::string& request, const ExchangePurpose& purpose,
                   std::chrono::milliseconds deadline, std::string (*remedyFor)(int error)) {
  const Acknowledgement answer = sendChange(protocol, request, purpose, deadline);
  if (answer.error != 0) {
    throw Error(purpose.object + ": " + purpose.verb + " failed: " + reasonOf(answer),
                remedyFor(answer.error));
  }
}

void throwNoReply(const ExchangePurpose& purpose, std::chrono::milliseconds deadline) {
  throw TimeoutError(purpose.object + ": " + purpose.verb + ": no reply from the kernel within " +
                         durationText(deadline) + "; the request may still take effect",
                     "check the kernel log (dmesg) for a driver or firmware that hangs");
}

void throwNoData(const ExchangePurpose& purpose, std::string_view reply) {
  const auto refusal = parseAcknowledgement(reply);
  throw Error(purpose.object + ": " + purpose.verb +
              " failed: " + (refusal ? reasonOf(*refusal) : "invalid reply from the kernel"));
}

std::string dumpNetlink(int protocol, const std::string& request, const ExchangePurpose& purpose,
                        std::chrono::milliseconds deadline) {
  return exchange(protocol, request, Answer::dump, purpose, deadline);
}

}  // namespace vfpass::host
