#include "netlink/netlink_batch.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "helper/guarded_child.hpp"
#include "netlink/netlink_socket.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t replyLimit = std::size_t{64} << 20U;
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

// `/proc/self/fd/7`, formatted without printf, which may allocate.
class DescriptorPath {
 public:
  explicit DescriptorPath(int descriptor) {
    char* end = text_.data() + std::strlen(text_.data());
    std::array<char, 12> digits{};
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + descriptor % 10);
      descriptor /= 10;
    } while (descriptor > 0);
    while (count > 0) {
      *end++ = digits[--count];
    }
  }
  [[nodiscard]] const char* get() const { return text_.data(); }

 private:
  std::array<char, 32> text_{"/proc/self/fd/"};
};

bool isNamespace(int descriptor, std::uint64_t inode) {
  struct stat status {};
  struct statfs system {};
  return ::fstat(descriptor, &status) == 0 && ::fstatfs(descriptor, &system) == 0 &&
         system.f_type == NSFS_MAGIC && status.st_ino == inode;
}

// Opens the file for reading only after checking that it is the namespace: opening a device can
// have side effects.
int enterBy(const char* file, std::uint64_t inode) {
  const int found = ::open(file, O_PATH | O_CLOEXEC);
  if (found < 0) {
    return errno;
  }
  int error = ENOENT;
  if (isNamespace(found, inode)) {
    const int opened = ::open(DescriptorPath(found).get(), O_RDONLY | O_CLOEXEC);
    error = opened >= 0 && ::setns(opened, CLONE_NEWNET) == 0 ? 0 : errno;
    error = error == EINVAL ? ENOENT : error;  // a namespace of another kind
    ::close(opened);
  }
  ::close(found);
  return error;
}

int enter(const NetlinkPlace& place) {
  int worst = place.files.empty() ? 0 : ENOENT;
  for (const std::string& file : place.files) {
    const int error = enterBy(file.c_str(), place.inode);
    if (error == 0) {
      return 0;
    }
    // ENOENT or ESRCH: the process has ended in the meantime.
    worst = error == ENOENT || error == ESRCH ? worst : error;
  }
  return worst;
}

void writeFrame(int pipe, const Frame& frame, const char* bytes) {
  writeAll(pipe, &frame, sizeof frame);
  writeAll(pipe, bytes, frame.length);
}

// Returns errno; 0 on success.
int converse(int pipe, std::uint32_t number, const NetlinkQuery& query, std::string& buffer) {
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
    writeFrame(pipe, {number, static_cast<std::uint32_t>(received), 0, 0}, buffer.data());
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
    writeFrame(pipe, {number, 0, error, 1}, nullptr);
  }
}

// Runs in the parent again.
void takeFrames(const std::string& bytes, std::vector<NetlinkAnswer>& answers) {
  for (std::size_t at = 0; bytes.size() - at >= sizeof(Frame);) {
    Frame frame;
    std::memcpy(&frame, bytes.data() + at, sizeof frame);
    at += sizeof frame;
    if (frame.query >= answers.size() || frame.length > bytes.size() - at) {
      return;
    }
    answers[frame.query].bytes.append(bytes, at, frame.length);
    at += frame.length;
    if (frame.last != 0) {
      answers[frame.query].error = frame.error;
    }
  }
}

}  // namespace

std::vector<NetlinkAnswer> runNetlinkBatch(const std::vector<NetlinkPlace>& places,
                                           const std::vector<NetlinkQuery>& queries, int kept,
                                           std::chrono::milliseconds deadline) {
  if (queries.empty()) {
    return {};
  }
  std::string buffer(datagramLimit, '\0');
  const GuardedReply reply = runGuarded(
      deadline, kept, [&](int pipe) { answer(pipe, places, queries, buffer); }, replyLimit);
  NetlinkAnswer unanswered;
  if (reply.bytes.size() > replyLimit) {
    unanswered.error = EMSGSIZE;
  } else if (reply.finished) {
    unanswered.error = ECHILD;  // the child was killed
  }
  std::vector<NetlinkAnswer> answers(queries.size(), unanswered);
  takeFrames(reply.bytes, answers);
  return answers;
}

}  // namespace vfpass::host
