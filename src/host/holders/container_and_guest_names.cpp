#include "vfpass/host/container_and_guest_names.hpp"

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

namespace {

constexpr std::size_t idLength = 64;  // a SHA-256 hash in hexadecimal
constexpr std::size_t shownLength = 12;
constexpr std::size_t longestContainerName = 64;

struct Prefix {
  std::string_view text;
  std::string_view runtime;
};

// Names of the runtimes' systemd scopes: `docker-ID.scope`. conmon's own scopes
// (`crio-conmon-ID.scope`) contain no process of the container.
constexpr std::array<Prefix, 5> scopes{{{"docker-", "docker"},
                                        {"libpod-", "podman"},
                                        {"crio-", "CRI-O"},
                                        {"cri-containerd-", "containerd"},
                                        {"nerdctl-", "containerd"}}};
// Parent groups of `ID` for runtimes without systemd.
constexpr std::array<Prefix, 4> parents{{{"docker", "docker"},
                                         {"libpod_parent", "podman"},
                                         {"kubepods", "containerd"},
                                         {"pod", "containerd"}}};

bool isId(std::string_view text) {
  return text.size() == idLength &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<Container> inScope(std::string_view group) {
  constexpr std::string_view suffix = ".scope";
  if (group.ends_with(suffix)) {
    group.remove_suffix(suffix.size());
  }
  for (const auto& [text, runtime] : scopes) {
    if (group.starts_with(text) && isId(group.substr(text.size()))) {
      return Container{std::string(runtime), std::string(group.substr(text.size(), shownLength))};
    }
  }
  return std::nullopt;
}

std::optional<Container> below(std::string_view parent, std::string_view group) {
  constexpr std::string_view payload = "lxc.payload.";
  if (group.starts_with(payload) || parent == "lxc") {
    const auto name = parent == "lxc" ? group : group.substr(payload.size());
    return Container{"LXC", printable(std::string(name.substr(0, longestContainerName)))};
  }
  for (const auto& [text, runtime] : parents) {
    if (parent.starts_with(text) && isId(group)) {
      return Container{std::string(runtime), std::string(group.substr(0, shownLength))};
    }
  }
  return std::nullopt;
}

// The innermost container in the path of one line.
std::optional<Container> inPath(std::string_view path) {
  std::optional<Container> found;
  std::string_view parent;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const std::string_view group = path.substr(0, end);
    auto here = inScope(group);
    here = here ? here : below(parent, group);
    found = here ? here : found;
    parent = group;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return found;
}

// The path in `0::/system.slice/docker-ID.scope` (cgroups(7): hierarchy, controllers, path),
// without its first slash.
std::string_view pathIn(std::string_view line) {
  const auto start = line.find(":/");
  return start == std::string_view::npos ? std::string_view{} : line.substr(start + 2);
}

}  // namespace

std::optional<Container> containerIn(std::string_view cgroups) {
  for (const std::string& line : splitLines(std::string(cgroups))) {
    if (auto found = inPath(pathIn(line))) {
      return found;
    }
  }
  return std::nullopt;
}

// `0::/system.slice/ollama.service/worker` or `/system.slice/system-x.slice/x@1.service`. The names
// are those of units, so nothing of systemd's escapes has to be decoded. Only systemd creates
// groups below system.slice; in groups of their own, users can choose every later part of the path.
std::string systemServiceIn(std::string_view cgroups) {
  constexpr std::string_view slice = "system.slice/";
  constexpr std::string_view suffix = ".service";
  for (const std::string& line : splitLines(std::string(cgroups))) {
    std::string_view path = pathIn(line);
    if (!path.starts_with(slice)) {
      continue;
    }
    path.remove_prefix(slice.size());
    while (!path.empty()) {
      const auto end = std::min(path.find('/'), path.size());
      const auto unit = path.substr(0, end);
      if (unit.size() > suffix.size() && unit.ends_with(suffix)) {
        return printable(std::string(unit));
      }
      path.remove_prefix(std::min(end + 1, path.size()));
    }
  }
  return {};
}

}  // namespace vfpass::host
