#include "holders/qemu_process.hpp"

#include <algorithm>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestName = 128;

std::vector<std::string_view> argumentsOf(std::string_view commandLine) {
  std::vector<std::string_view> arguments;
  while (!commandLine.empty()) {
    const std::size_t end = std::min(commandLine.find('\0'), commandLine.size());
    arguments.push_back(commandLine.substr(0, end));
    commandLine.remove_prefix(std::min(end + 1, commandLine.size()));
  }
  return arguments;
}

// QEMU treats `-name X` as `-name guest=X`. A comma in a value is doubled.
std::string guestName(std::string_view option) {
  constexpr std::string_view key = "guest=";
  if (option.starts_with(key)) {
    option.remove_prefix(key.size());
  }
  std::string name;
  for (std::size_t i = 0; i < option.size() && name.size() < longestName; ++i) {
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
