#include "channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <nlohmann/json.hpp>

#include "json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

Error gone(const std::string& reason) {
  return Error("the other side is gone: " + reason, "look at what it printed");
}

}  // namespace

void Channel::waitFor(short events, const char* doing) {
  for (;;) {
    deadline_.check(doing);
    const auto left = std::min<std::chrono::milliseconds::rep>(deadline_.left().count(), INT_MAX);
    pollfd entry{socket_.get(), events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) {
      return;
    }
    if (ready < 0 && errno != EINTR) {
      throw gone(errnoText(errno));
    }
  }
}

void Channel::send(const Json& message) {
  const std::string text = message.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  std::string_view left = text;
  while (!left.empty()) {
    waitFor(POLLOUT, "sending to the other side");
    const ssize_t sent =
        ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      throw gone(errnoText(errno));
    }
    left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
}

std::string Channel::line() {
  for (;;) {
    if (const auto end = read_.find('\n'); end != std::string::npos) {
      std::string found = read_.substr(0, end);
      read_.erase(0, end + 1);
      return found;
    }
    if (read_.size() > largestMessage) {
      throw gone("its message has no end");
    }
    waitFor(POLLIN, "waiting for the other side");
    std::array<char, 4096> part{};
    const ssize_t count = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (count == 0) {
      return {};
    }
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      throw gone(errnoText(errno));
    }
    read_.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

Json Channel::receiveAny() {
  const std::string text = line();
  return text.empty() ? Json{{"type", "end"}} : parseMessage(text);
}

Json Channel::receive(const std::string& type) {
  Json message = receiveAny();
  const std::string got = textMember(message, "type");
  if (got == "failed") {
    throw Error("the other side failed: " + printable(textMember(message, "error")),
                printable(textMember(message, "remedy")));
  }
  if (got != type) {
    throw gone(got == "end" ? "it closed the connection"
                            : "it said " + printable(got) + " where " + type + " was due");
  }
  return message;
}

}  // namespace vfpass::probe
