#include "holders/container.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t idLength = 64;  // a SHA-256 hash in hexadecimal
constexpr std::size_t shownLength = 12;
constexpr std::size_t longestName = 64;

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
    return Container{"LXC", printable(std::string(name.substr(0, longestName)))};
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
