#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "channel/json_reader.hpp"
#include "channel/transport.hpp"
#include "transfer/run_deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

Error peerError(const std::string& reason) {
  return Error("the other side: " + reason, "check its output");
}

class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(FileDescriptor socket) : socket_(std::move(socket)) {}

  void send(const std::string& line, const Deadline& deadline) override {
    const std::string text = line + "\n";
    std::string_view left = text;
    while (!left.empty()) {
      waitFor(POLLOUT, "sending to the other side", deadline);
      const ssize_t sent =
          ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        throw peerError("connection lost: " + errnoText(errno));
      }
      left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
  }

  std::optional<std::string> receive(const Deadline& deadline) override {
    for (;;) {
      if (const auto end = read_.find('\n'); end != std::string::npos) {
        std::string found = read_.substr(0, end);
        read_.erase(0, end + 1);
        return found;
      }
      if (read_.size() > largestMessage) {
        throw peerError("message longer than 64 KiB");
      }
      if (!readMore(deadline)) {
        return std::nullopt;
      }
    }
  }

 private:
  /// Returns false at the end of the stream.
  bool readMore(const Deadline& deadline) {
    waitFor(POLLIN, "waiting for the other side", deadline);
    std::array<char, 4096> part{};
    const ssize_t count = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      throw peerError("connection lost: " + errnoText(errno));
    }
    read_.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return count != 0;
  }

  void waitFor(short events, const char* doing, const Deadline& deadline) const {
    for (;;) {
      requireTimeLeft(deadline, doing);
      pollfd entry{socket_.get(), events, 0};
      const int ready = ::poll(&entry, 1, deadline.pollTimeout());
      if (ready > 0) {
        return;
      }
      if (ready < 0 && errno != EINTR) {
        throw peerError("connection lost: " + errnoText(errno));
      }
    }
  }

  FileDescriptor socket_;
  std::string read_;  ///< received after the last line
};

}  // namespace

std::unique_ptr<Transport> socketTransport(FileDescriptor socket) {
  return std::make_unique<SocketTransport>(std::move(socket));
}

}  // namespace vfpass::probe
