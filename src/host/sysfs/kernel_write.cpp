#include "sysfs/kernel_write.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "helper/guarded_child.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

constexpr char readRequest = 'r';
constexpr char writeRequest = 'w';
constexpr std::size_t nameRoom = 16;  // TASK_COMM_LEN
constexpr std::size_t headLength = 1 + nameRoom;

// The kind of request, the task's name padded with zeros, and the text to write.
std::string requestFor(char kind, std::string_view name, std::string_view text) {
  std::string request(1, kind);
  request += name.substr(0, nameRoom - 1);
  request.resize(headLength, '\0');
  return request.append(text);
}

// One message with one descriptor attached.
struct Envelope {
  Envelope(char* bytes, std::size_t length) : content{bytes, length} {
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }

  iovec content;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

bool sendRequest(int socket, int file, std::string_view request) {
  std::string bytes(request);
  Envelope envelope(bytes.data(), bytes.size());
  cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  return ::sendmsg(socket, &envelope.message, MSG_NOSIGNAL) >= 0;
}

// Everything down to `serve` runs in the helper: no allocations, no exceptions.
struct Request {
  ssize_t length = 0;  // 0: the parent has closed its socket or is dead
  int file = -1;
};

Request receiveRequest(int socket, char* bytes, std::size_t capacity) {
  Envelope envelope(bytes, capacity);
  Request request;
  do {
    request.length = ::recvmsg(socket, &envelope.message, MSG_CMSG_CLOEXEC);
  } while (request.length < 0 && errno == EINTR);
  const cmsghdr* header = request.length > 0 ? CMSG_FIRSTHDR(&envelope.message) : nullptr;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&request.file, CMSG_DATA(header), sizeof request.file);
  }
  return request;
}

// One read(2) or write(2); count and errno.
struct CallResult {
  ssize_t count = -1;
  int error = 0;
};

// sysfs passes each write(2) to the attribute as a whole, so there are no partial writes.
CallResult call(int file, std::string_view request, char* bytes) {
  const CallMark mark(request.data() + 1);
  if (mark.error() != 0) {
    ::close(file);
    return {-1, mark.error()};
  }
  const std::string_view text = request.substr(headLength);
  const ssize_t count = request[0] == readRequest ? ::read(file, bytes, GuardedHelper::limit)
                                                  : ::write(file, text.data(), text.size());
  const int error = count < 0 ? errno : 0;
  ::close(file);  // within the marked call: a file's release can block, too
  return {count, error};
}

// The reply is errno, followed by the bytes read.
void serve(int socket) {
  std::array<char, GuardedHelper::limit + headLength> request{};
  std::array<char, GuardedHelper::limit + sizeof(int)> reply{};
  while (true) {
    const auto [length, file] = receiveRequest(socket, request.data(), request.size());
    if (length < static_cast<ssize_t>(headLength)) {
      return;
    }
    const auto [count, error] =
        call(file, {request.data(), static_cast<std::size_t>(length)}, reply.data() + sizeof(int));
    std::memcpy(reply.data(), &error, sizeof error);
    const auto extra = request[0] == readRequest && count > 0 ? static_cast<std::size_t>(count) : 0;
    if (::send(socket, reply.data(), sizeof error + extra, MSG_NOSIGNAL) < 0) {
      return;
    }
  }
}

}  // namespace

void GuardedHelper::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error("cannot create a socket pair: " + errnoText(errno));
  }
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor other(ends[1]);
  startGuarded(other.get(), -1, serve);
}

void GuardedHelper::send(int file, std::string_view request) {
  if (socket_ && sendRequest(socket_.get(), file, request)) {
    return;
  }
  start();  // the first helper, or a replacement for one that was killed while idle
  if (!sendRequest(socket_.get(), file, request)) {
    throw Error("cannot send a request to a helper process: " + errnoText(errno));
  }
}

HelperReply GuardedHelper::receive() {
  HelperReply reply{true, ECHILD, {}};
  std::array<char, limit + sizeof reply.error> bytes{};
  const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count < static_cast<ssize_t>(sizeof reply.error)) {
    socket_.reset();  // the helper was killed before it replied
    return reply;
  }
  std::memcpy(&reply.error, bytes.data(), sizeof reply.error);
  reply.bytes.assign(bytes.data() + sizeof reply.error,
                     static_cast<std::size_t>(count) - sizeof reply.error);
  return reply;
}

HelperReply GuardedHelper::finish(std::chrono::milliseconds timeout) {
  const Deadline deadline(timeout);
  pollfd wait{socket_.get(), POLLIN, 0};
  while (::poll(&wait, 1, deadline.pollTimeout()) <= 0) {
    if (deadline.over()) {
      socket_.reset();  // the helper exits by itself once its call returns
      return {};
    }
  }
  return receive();
}

HelperReply GuardedHelper::write(int file, std::string_view text, std::string_view name,
                                 std::chrono::milliseconds deadline) {
  beginWrite(file, text, name);
  return finish(deadline);
}

void GuardedHelper::beginWrite(int file, std::string_view text, std::string_view name) {
  if (text.size() > limit) {
    throw Error("cannot write more than one page to sysfs");
  }
  send(file, requestFor(writeRequest, name, text));
}

HelperReply GuardedHelper::read(int file, std::string_view name,
                                std::chrono::milliseconds deadline) {
  send(file, requestFor(readRequest, name, {}));
  return finish(deadline);
}

namespace {

// Files that configure VFs: their count, and MLNX_OFED's attribute files.
bool isSriovFile(const std::string& path) {
  return path.find("/sriov_") != std::string::npos || path.find("/sriov/") != std::string::npos;
}

[[noreturn]] void throwRefused(const DeviceWrite& write, int error) {
  throw WriteError(toString(write.device) + ": cannot write \"" + std::string(trim(write.text)) +
                       "\" to /" + write.path + ": " + errnoText(error),
                   writeRemedy(write.path, error, ::geteuid() == 0), error);
}

// Creating and removing VFs takes the driver's own time, also if nothing holds one.
[[noreturn]] void throwLate(const std::string& call, const std::string& path,
                            const PciAddress& device, std::chrono::milliseconds deadline) {
  const std::string late = toString(device) + ": " + call + " /" + path +
                           " did not return within " + durationText(deadline);
  if (path.ends_with("/sriov_numvfs")) {
    throw TimeoutError(late,
                       "find the cause in the kernel log (`dmesg | grep " + toString(device) +
                           "`); if a VM or process uses a VF of this PF, stop it; run `vfpass "
                           "recover` once the kernel has completed the write");
  }
  throw TimeoutError(
      late + "; something still holds the device",
      "stop the holder (a running VM, a process that has its files open, a bond or bridge), then "
      "run `vfpass recover`; the kernel completes the write once the device is free");
}

void requireWritten(const HelperReply& reply, const DeviceWrite& write,
                    std::chrono::milliseconds deadline) {
  if (!reply.finished) {
    throwLate("the write to", write.path, write.device, deadline);
  }
  if (reply.error != 0) {
    throwRefused(write, reply.error);
  }
}

FileDescriptor openForWriting(const Root& root, const DeviceWrite& write) {
  FileDescriptor file = root.open(write.path, O_WRONLY | O_NOCTTY | O_NOFOLLOW);
  if (!file) {
    throwRefused(write, errno);
  }
  return file;
}

}  // namespace

std::string writeRemedy(const std::string& path, int error, bool asRoot) {
  // The file's mode permits root to write, so EPERM comes from the driver.
  if (error == EPERM && asRoot && isSriovFile(path)) {
    return eswitchRemedy;
  }
  switch (error) {
    case EACCES:
    case EPERM:
      return "run as root, with a writable /sys (not in a container)";
    case EROFS:
      return "run on the host itself: /sys is mounted read-only here";
    default:
      return "check the kernel log (dmesg)";
  }
}

std::string durationText(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count < 1000) {
    return std::to_string(count) + " ms";
  }
  const auto tenths = count % 1000 / 100;
  return std::to_string(count / 1000) + (tenths == 0 ? "" : "." + std::to_string(tenths)) + " s";
}

void GuardedWriter::write(const std::string& path, std::string_view text, const PciAddress& device,
                          std::chrono::milliseconds deadline) {
  const DeviceWrite write{device, path, std::string(text)};
  const FileDescriptor file = openForWriting(root_, write);
  requireWritten(helper_.write(file.get(), text, taskName(device), deadline), write, deadline);
}

std::vector<std::exception_ptr> GuardedWriter::writeTogether(const std::vector<DeviceWrite>& writes,
                                                             std::chrono::milliseconds timeout) {
  const Deadline deadline(timeout);
  std::vector<GuardedHelper> helpers(writes.size());
  std::vector<std::exception_ptr> failures(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    failures[i] = caught([&] {
      const FileDescriptor file = openForWriting(root_, writes[i]);
      helpers[i].beginWrite(file.get(), writes[i].text, taskName(writes[i].device));
    });
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!failures[i]) {
      const std::chrono::milliseconds left = deadline.left();
      failures[i] = caught([&] { requireWritten(helpers[i].finish(left), writes[i], timeout); });
    }
  }
  return failures;
}

std::string GuardedWriter::read(const std::string& path, const PciAddress& device,
                                std::chrono::milliseconds deadline) {
  const FileDescriptor file = root_.open(path, O_RDONLY | O_NOCTTY | O_NOFOLLOW);
  const HelperReply reply =
      file ? helper_.read(file.get(), taskName(device), deadline) : HelperReply{true, errno, {}};
  if (!reply.finished) {
    throwLate("the read of", path, device, deadline);
  }
  if (reply.error != 0) {
    throw Error(toString(device) + ": cannot read /" + path + ": " + errnoText(reply.error),
                writeRemedy(path, reply.error, ::geteuid() == 0));
  }
  return reply.bytes;
}

}  // namespace vfpass::host
