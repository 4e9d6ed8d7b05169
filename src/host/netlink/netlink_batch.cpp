#include "netlink/netlink_exchange.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "helper/guarded_child.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t datagramLimit = std::size_t{512} << 10U;

// Header of the child's reply: one frame precedes each datagram, and an empty frame ends each
// query.
struct Frame {
  std::uint32_t query = 0;
  std::uint32_t length = 0;
  std::int32_t error = 0;
  std::int32_t last = 0;
};

// Everything down to `answer` runs in the guarded child: no allocations, no exceptions.

// Returns errno; 0 on success.
int enterOpened(int opened) {
  if (opened < 0) {
    return errno;
  }
  const int error = ::setns(opened, CLONE_NEWNET) == 0 ? 0 : errno;
  ::close(opened);
  return error == EINVAL ? ENOENT : error;  // a namespace of another kind
}

// The first success, or else the error of a file that exists. ENOENT or ESRCH: the process has
// ended in the meantime.
int worse(int one, int other) { return other == ENOENT || other == ESRCH ? one : other; }

int enter(const NetlinkPlace& place) {
  int error = place.files.empty() && place.mounts.empty() ? 0 : ENOENT;
  const auto enters = [&](int opened) {
    const int tried = enterOpened(opened);
    error = worse(error, tried);
    return tried == 0;
  };
  for (const std::string& file : place.files) {
    if (enters(openNamespace(file.c_str(), place.inode))) {
      return 0;
    }
  }
  for (const NamespaceMount& mount : place.mounts) {
    if (enters(openNamespace(mount, place.inode))) {
      return 0;
    }
  }
  return error;
}

bool writeFrame(int pipe, const Frame& frame, const char* bytes) {
  return writeAll(pipe, &frame, sizeof frame) && writeAll(pipe, bytes, frame.length);
}

// Returns errno; 0 on success.
int converse(int pipe, std::uint32_t number, const NetlinkQuery& query, std::string& buffer) {
  if (query.netdev != 0 && isDetached(query.netdev)) {
    return ENODEV;
  }
  const int socket = openNetlink(query.protocol);
  if (socket < 0) {
    return errno;
  }
  int error = sendNetlink(socket, query.request) ? 0 : errno;
  for (bool more = error == 0; more;) {
    const ssize_t length = receiveNetlink(socket, {buffer.data(), buffer.size()});
    if (length < 0) {
      error = errno;
      break;
    }
    const auto received = static_cast<std::size_t>(length);
    if (!writeFrame(pipe, {number, static_cast<std::uint32_t>(received), 0, 0}, buffer.data())) {
      break;
    }
    more = query.dump && !endsDump(buffer.data(), received);
  }
  ::close(socket);
  return error;
}

void answer(int pipe, const std::vector<NetlinkPlace>& places,
            const std::vector<NetlinkQuery>& queries, std::string& buffer) {
  std::size_t entered = places.size();
  int entryError = 0;
  for (std::uint32_t number = 0; number < queries.size(); ++number) {
    const NetlinkQuery& query = queries[number];
    if (query.place != entered) {
      entered = query.place;
      entryError = enter(places[entered]);
    }
    const int error = entryError == 0 ? converse(pipe, number, query, buffer) : entryError;
    if (!writeFrame(pipe, {number, 0, error, 1}, nullptr)) {
      return;  // the parent's deadline has passed
    }
  }
}

// Runs in the parent again: passes on the datagrams as they arrive, so that their total does not
// matter.
class FrameReader {
 public:
  FrameReader(std::vector<int>& errors, const DatagramVisitor& visit)
      : errors_(errors), visit_(visit) {}

  void take(std::string_view bytes) {
    bytes_.append(bytes);
    std::size_t at = 0;
    for (Frame frame; bytes_.size() - at >= sizeof frame; at += sizeof frame + frame.length) {
      std::memcpy(&frame, bytes_.data() + at, sizeof frame);
      if (frame.length > bytes_.size() - at - sizeof frame) {
        break;
      }
      deliver(frame, std::string_view(bytes_).substr(at + sizeof frame, frame.length));
    }
    bytes_.erase(0, at);
  }

 private:
  void deliver(const Frame& frame, std::string_view datagram) {
    if (frame.query >= errors_.size()) {
      return;
    }
    if (frame.last != 0) {
      errors_[frame.query] = frame.error;
    } else {
      visit_(frame.query, datagram);
    }
  }

  std::vector<int>& errors_;
  const DatagramVisitor& visit_;
  std::string bytes_;
};

}  // namespace

std::vector<int> streamNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                    const std::vector<NetlinkQuery>& queries, int kept,
                                    std::chrono::milliseconds deadline,
                                    const DatagramVisitor& visit) {
  std::vector<int> errors(queries.size(), ETIMEDOUT);
  if (queries.empty()) {
    return errors;
  }
  std::string buffer(datagramLimit, '\0');
  FrameReader reader(errors, visit);
  const GuardedReply reply = runGuarded(
      deadline, kept, [&](int pipe) { answer(pipe, places, queries, buffer); },
      [&](std::string_view bytes) {
        reader.take(bytes);
        return true;
      });
  if (reply.finished) {
    std::ranges::replace(errors, ETIMEDOUT, ECHILD);  // the child was killed
  } else {
    // It would wait for its reply as long as this process runs, and nothing would read the answer.
    // One that hangs in the kernel ends later.
    endGuarded(reply.child, std::chrono::milliseconds(0));
  }
  return errors;
}

std::vector<NetlinkAnswer> runNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                           const std::vector<NetlinkQuery>& queries, int kept,
                                           std::chrono::milliseconds deadline) {
  std::vector<NetlinkAnswer> answers(queries.size());
  const auto errors = streamNetlinkBatch(
      places, queries, kept, deadline,
      [&](std::size_t query, std::string_view datagram) { answers[query].bytes += datagram; });
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answers[i].error = errors[i];
  }
  return answers;
}

}  // namespace vfpass::host
