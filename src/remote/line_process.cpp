#include "line_process.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

constexpr std::chrono::milliseconds checkpointInterval{100};
constexpr const char* ended = "it ended";

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command, Checkpoint checkpoint)
    : program_(command.front()), checkpoint_(std::move(checkpoint)) {
  std::array<int, 2> stream{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream.data()) != 0) {
    throw Error("cannot create a socket pair: " + errnoText(errno));
  }
  stream_ = FileDescriptor(stream[0]);
  const FileDescriptor childStream(stream[1]);
  process_.emplace(command, childStream.get());
}

std::string LineProcess::ask(const std::string& line, std::chrono::milliseconds timeout,
                             std::size_t limit) {
  const Deadline deadline(timeout);
  send(line);
  while (true) {
    const auto end = received_.find('\n');
    if (end != std::string::npos && end <= limit) {
      std::string reply = received_.substr(0, end);
      received_.erase(0, end + 1);
      return reply;
    }
    if (received_.size() > limit) {
      fail("its reply is longer than " + std::to_string(limit) + " bytes");
    }
    if (deadline.over()) {
      fail("no reply within " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(timeout).count()) + " s");
    }
    checkpoint_();
    pollfd wait{stream_.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(std::min(deadline.left(), checkpointInterval).count()));
    if (wait.revents != 0 && !receive()) {
      fail(ended);
    }
  }
}

void LineProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  // Requests are short; the socket's buffer holds them even if the process does not read.
  if (::send(stream_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(text.size())) {
    fail(errno == EAGAIN ? "it does not read" : ended);
  }
}

bool LineProcess::receive() {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::recv(stream_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void LineProcess::fail(const std::string& what) {
  const std::string reason = process_->lastMessage();
  const bool explains = what == ended && !reason.empty();
  throw Error(program_ + ": " +
              (explains         ? reason
               : reason.empty() ? what
                                : what + "; its last message: " + reason));
}

}  // namespace vfpass::remote
