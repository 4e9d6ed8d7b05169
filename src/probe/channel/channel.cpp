#include "channel/channel.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "system/sysfs_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

using Json = nlohmann::json;

namespace {

constexpr int deepestMessage = 8;

const JsonSource messageSource{"the other side sent an invalid message",
                               "run the same build of vfpass-probe on both sides"};

}  // namespace

Json parseMessage(std::string_view text) {
  return parseJson(text, {largestMessage, deepestMessage}, messageSource);
}

JsonReader readerOf(const Json& message) { return JsonReader(message, messageSource); }

void requireTimeLeft(const Deadline& deadline, const std::string& doing) {
  if (deadline.over()) {
    throw Error("deadline expired while " + doing,
                "use a longer --deadline, or fewer or smaller messages");
  }
}

void Channel::send(const Json& message) {
  transport_->send(message.dump(-1, ' ', true, Json::error_handler_t::replace), deadline_);
}

Json Channel::receiveAny() {
  const auto text = transport_->receive(deadline_);
  return text ? parseMessage(*text) : Json{{"type", "end"}};
}

Json Channel::receive(const std::string& type) {
  Json message = receiveAny();
  const std::string got = readerOf(message)["type"].requireText();
  if (got == "failed") {
    throwFailure(message);
  }
  if (got != type) {
    throw Error(
        "the other side " + (got == "end" ? "closed the connection"
                                          : "sent " + printable(got) + " instead of " + type),
        "check its output");
  }
  return message;
}

void Channel::sendFailure(const Error& error) {
  try {
    send({{"type", "failed"}, {"error", error.what()}, {"remedy", error.remedy()}});
  } catch (const Error&) {
    // The other side is gone; the original error counts.
  }
}

void throwFailure(const Json& message) {
  const JsonReader failure = readerOf(message);
  throw Error("the other side failed: " + printable(failure["error"].requireText()),
              printable(failure["remedy"].requireText()));
}

namespace {

namespace fs = std::filesystem;

Error folderError(const fs::path& path, int error) {
  return Error("cannot write " + path.string() + ": " + errnoText(error),
               "use a directory of this user with free space");
}

void writeWhole(const fs::path& path, const std::string& text) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw folderError(path, errno);
  }
}

class FolderTransport final : public Transport {
 public:
  explicit FolderTransport(fs::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    if (!fs::is_directory(folder_, error)) {
      throw Error(folder_.string() + ": no such directory", "create it", ExitCode::badInput);
    }
    // The other side's first line may arrive before this side starts, but only this side writes
    // out.N.
    if (fs::exists(folder_ / "out.1", error)) {
      throw Error(folder_.string() + " holds files of another exchange", "use an empty directory",
                  ExitCode::badInput);
    }
  }
  ~FolderTransport() override {
    try {
      put("");
    } catch (const Error&) {
      // The other side will run into its deadline.
    }
  }

  void send(const std::string& line, const Deadline& /*deadline*/) override { put(line + "\n"); }

  std::optional<std::string> receive(const Deadline& deadline) override {
    const std::string name = "in." + std::to_string(received_ + 1);
    const SysfsReader reader(folder_);
    // Not every file system reports new files, so poll, at first often, then less often.
    constexpr int longestPause = 100;
    for (int pause = 1; !reader.exists(name); pause = std::min(pause * 2, longestPause)) {
      requireTimeLeft(deadline, "waiting for " + (folder_ / name).string());
      ::poll(nullptr, 0, pause);
    }
    ++received_;
    const std::string text = reader.bytes(name, largestMessage + 1);
    return text.empty() ? std::nullopt : std::optional(std::string(trim(text)));
  }

 private:
  void put(const std::string& text) {
    const fs::path unfinished = folder_ / "unfinished";
    const fs::path whole = folder_ / ("out." + std::to_string(sent_ + 1));
    writeWhole(unfinished, text);
    if (::rename(unfinished.c_str(), whole.c_str()) != 0) {
      throw folderError(whole, errno);
    }
    ++sent_;
  }

  fs::path folder_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace

std::unique_ptr<Transport> folderTransport(const fs::path& folder) {
  return std::make_unique<FolderTransport>(folder);
}

namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(const std::string& host, const std::string& port, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &wanted, &found);
  if (error != 0) {
    throw Error(printable(host) + " port " + printable(port) + ": " + ::gai_strerror(error),
                "use a numeric address and port", ExitCode::badInput);
  }
  return {found, ::freeaddrinfo};
}

FileDescriptor newSocket(const addrinfo& address) {
  FileDescriptor made(
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
  if (!made) {
    throw Error("cannot create a socket: " + errnoText(errno));
  }
  return made;
}

/// connect(2) has no deadline of its own, but obeys a socket's send timeout.
void limitConnect(const FileDescriptor& socket, const Deadline& deadline) {
  const auto left = deadline.left().count();
  const timeval limit{left / 1000, (left % 1000) * 1000 + 1};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/// Each message is answered before the next one, so waiting for more data would only cost time.
void sendAtOnce(const FileDescriptor& socket) {
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

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

FileDescriptor acceptOne(const std::string& address, const std::string& port,
                         const Deadline& deadline) {
  const Addresses found = resolve(address, port, AI_PASSIVE);
  const FileDescriptor listener = newSocket(*found);
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener.get(), 1) != 0) {
    throw Error("cannot listen on port " + printable(port) + ": " + errnoText(errno),
                "use another --port");
  }
  for (;;) {
    requireTimeLeft(deadline, "waiting for the other side to connect");
    constexpr int oneSecond = 1000;
    pollfd entry{listener.get(), POLLIN, 0};
    if (::poll(&entry, 1, std::min(deadline.pollTimeout(), oneSecond)) > 0) {
      FileDescriptor connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection) {
        sendAtOnce(connection);
        return connection;
      }
    }
  }
}

FileDescriptor connectTo(const std::string& host, const std::string& port,
                         const Deadline& deadline) {
  const Addresses found = resolve(host, port, 0);
  for (;;) {
    FileDescriptor connection = newSocket(*found);
    limitConnect(connection, deadline);
    if (::connect(connection.get(), found->ai_addr, found->ai_addrlen) == 0) {
      sendAtOnce(connection);
      return connection;
    }
    const std::string reason = errnoText(errno);
    if (deadline.over()) {
      throw Error(
          "cannot connect to " + printable(host) + " port " + printable(port) + ": " + reason,
          "start vfpass-probe listen there, and check the firewall");
    }
    ::poll(nullptr, 0, 50);  // the other side may be about to listen
  }
}

std::unique_ptr<Transport> socketTransport(FileDescriptor socket) {
  return std::make_unique<SocketTransport>(std::move(socket));
}

}  // namespace vfpass::probe
