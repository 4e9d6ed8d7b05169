#include "vfpass/host/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "helper/guarded_child.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestCommandLine = std::size_t{64} << 10U;
constexpr std::size_t longestOption = 128;
constexpr std::chrono::milliseconds deadline{1000};

// QEMU treats `-name X` as `-name guest=X`. A comma in a value is doubled.
std::string guestName(std::string_view option) {
  constexpr std::string_view key = "guest=";
  if (option.starts_with(key)) {
    option.remove_prefix(key.size());
  }
  std::string name;
  for (std::size_t i = 0; i < option.size() && name.size() < longestOption; ++i) {
    if (option[i] == ',') {
      if (i + 1 == option.size() || option[i + 1] != ',') {
        break;
      }
      ++i;
    }
    name += option[i];
  }
  return printable(name);
}

}  // namespace

std::string readCommandLine(const Root& root, const std::string& process) {
  const std::string path = "proc/" + process + "/cmdline";
  if (!root.isLive()) {
    return root.readText(path, longestCommandLine).value_or("");
  }
  const FileDescriptor file = root.open(path, O_RDONLY | O_CLOEXEC);
  if (!file) {
    return "";
  }
  const auto copy = [&file](int pipe) {
    std::array<char, 4096> buffer{};
    std::size_t left = longestCommandLine;
    ssize_t length = 0;
    while (left > 0 &&
           (length = ::read(file.get(), buffer.data(), std::min(left, buffer.size()))) > 0) {
      writeAll(pipe, buffer.data(), static_cast<std::size_t>(length));
      left -= static_cast<std::size_t>(length);
    }
  };
  const GuardedReply reply = runGuarded(deadline, file.get(), copy);
  return reply.finished ? reply.bytes : "";
}

std::vector<std::string> argumentsOf(std::string_view commandLine) {
  std::vector<std::string> arguments;
  while (!commandLine.empty()) {
    const std::size_t end = std::min(commandLine.find('\0'), commandLine.size());
    arguments.emplace_back(commandLine.substr(0, end));
    commandLine.remove_prefix(std::min(end + 1, commandLine.size()));
  }
  return arguments;
}

QemuGuest parseQemuGuest(std::string_view commandLine) {
  QemuGuest guest;
  const auto arguments = argumentsOf(commandLine);
  for (std::size_t i = 1; i + 1 < arguments.size(); ++i) {
    const std::string_view value = arguments[i + 1];
    if (arguments[i] == "-name" && guest.name.empty()) {
      guest.name = guestName(value);
      ++i;
    } else if (arguments[i] == "-uuid" && !guest.uuid) {
      guest.uuid = parseUuid(value);
      ++i;
    }
  }
  return guest;
}

}  // namespace vfpass::host
