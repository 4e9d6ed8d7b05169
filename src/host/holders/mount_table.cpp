#include "holders/mount_table.hpp"

#include <fcntl.h>

#include <algorithm>

#include "sysfs/file_reading.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t mountLimit = 16;       // per device
constexpr unsigned namespaceMountLimit = 4;  // per network namespace

// Not libmount: Debian has it only as a shared library, and the static hook links this stage.
// Word `number` of a line, counted from 0; empty when there are fewer words.
std::string_view word(std::string_view line, std::size_t number) {
  for (; number > 0; --number) {
    const auto space = line.find(' ');
    if (space == std::string_view::npos) {
      return {};
    }
    line.remove_prefix(space + 1);
  }
  return line.substr(0, line.find_first_of(" \t"));
}

// Whether the source of a mount of this type is a fact. In the host's namespaces root mounts, and
// users through fusermount, with any source; elsewhere users do. These file systems need root
// everywhere and fill in the source themselves (super_operations.show_devname).
bool hasReliableSource(std::string_view type, bool trusted) {
  const bool ofKernel = type == "btrfs" || type == "bcachefs";
  return ofKernel || (trusted && type != "fuse" && !type.starts_with("fuse."));
}

// The kernel writes space, tab, newline and backslash as a backslash and three octal digits.
std::string unescaped(std::string_view path) {
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto code = path[i] == '\\' && path.size() - i > 3 ? parseNumber(path.substr(i + 1, 3), 8)
                                                             : std::nullopt;
    if (code && *code < 256) {
      text += static_cast<char>(*code);
      i += 3;
    } else {
      text += path[i];
    }
  }
  return text;
}

bool isIn(const Root& root, const std::string& directory, std::uint64_t mountNamespace) {
  return readNamespaces(root, directory).mount == mountNamespace;
}

enum class Owner { host, user, unknown };

// In a captured tree nobody can choose what is in a mount namespace. Unknown: the process has
// ended.
Owner ownerOf(const Root& root, const std::string& directory, std::uint64_t mountNamespace) {
  if (!root.isLive()) {
    return Owner::host;
  }
  const FileDescriptor file = root.open("proc/" + directory + "/ns/mnt", O_RDONLY);
  if (!file) {
    return isIn(root, directory, mountNamespace) ? Owner::user : Owner::unknown;
  }
  return isOwnedByHost(file.get()) ? Owner::host : Owner::user;
}

}  // namespace

MountTable::MountTable(const Root& root) {
  readNamespace(root, {"self", {}, true}, Clock::time_point::max());
  eachLine(root, "proc/swaps", [&](std::string_view line) {
    swaps_.emplace_back(word(line, 0));
    return true;
  });
}

MountTable::MountTable(const Root& root, const std::vector<Process>& processes,
                       std::chrono::milliseconds timeout)
    : MountTable(root) {
  const auto ours = host::readNamespaces(root, "self").mount;
  std::map<std::uint64_t, Viewers> ofHost;
  std::map<std::uint64_t, Viewers> ofUsers;
  const auto add = [&](const std::string& directory, const Process& process,
                       std::optional<std::uint64_t> inode) {
    if (!inode || inode == ours) {
      return;
    }
    Owner owner = ofHost.contains(*inode) ? Owner::host : Owner::user;
    if (owner == Owner::user && !ofUsers.contains(*inode)) {
      owner = ownerOf(root, directory, *inode);
    }
    if (owner != Owner::unknown) {
      (owner == Owner::host ? ofHost : ofUsers)[*inode].push_back({directory, &process});
    }
  };
  for (const Process& process : processes) {
    add(process.id, process, process.mountNamespace);
    for (const OwnNamespaces& thread : process.threads) {
      add(thread.directory, process, thread.namespaces.mount);
    }
  }
  readNamespaces(root, ofHost, true, Clock::time_point::max());
  readNamespaces(root, ofUsers, false, Clock::now() + timeout);
}

void MountTable::readNamespaces(const Root& root, const std::map<std::uint64_t, Viewers>& viewers,
                                bool trusted, Clock::time_point deadline) {
  for (const auto& [inode, threads] : viewers) {
    const auto of = inode;  // clang 14 cannot capture a structured binding
    const bool read = std::ranges::any_of(threads, [&](const Thread& thread) {
      return readNamespace(root, {thread.directory, describe(*thread.process), trusted}, deadline);
    });
    // A namespace that all its threads have left cannot be read.
    complete_ = complete_ && (read || std::ranges::none_of(threads, [&](const Thread& thread) {
                                return isIn(root, thread.directory, of);
                              }));
  }
}

bool MountTable::readNamespace(const Root& root, const Viewer& viewer, Clock::time_point deadline) {
  const LinesRead read =
      eachLine(root, "proc/" + viewer.directory + "/mountinfo", [&](std::string_view line) {
        addLine(viewer, line);
        return Clock::now() < deadline;
      });
  complete_ = complete_ && read != LinesRead::some;
  return read != LinesRead::none;
}

// proc(5): mount id, parent id, major:minor, root, mount point, options, optional fields, `-`,
// type, source. The root of a mounted namespace is `net:[INODE]`; every other one begins with `/`.
void MountTable::addLine(const Viewer& viewer, std::string_view line) {
  constexpr std::string_view separator = " - ";
  const std::string_view path = word(line, 4);
  if (const auto inode = namespaceInode(word(line, 3), "net")) {
    if (mountCounts_[*inode]++ < namespaceMountLimit) {
      networkNamespaces_.push_back(
          {*inode,
           {"/proc/" + viewer.directory + "/root", unescaped(path), viewer.trusted},
           viewer.owner.empty()});
    }
    return;
  }
  const std::string_view number = word(line, 2);
  if (!number.empty() && !number.starts_with("0:")) {
    addMount(number, viewer, path);
  }
  const auto end = line.find(separator);
  if (end == std::string_view::npos || !number.starts_with("0:")) {
    return;
  }
  const std::string_view rest = line.substr(end + separator.size());
  if (hasReliableSource(word(rest, 0), viewer.trusted)) {
    addSources(viewer, word(rest, 1), path);
  }
}

// The source of bcachefs contains all its devices, separated by colons.
void MountTable::addSources(const Viewer& viewer, std::string_view source, std::string_view path) {
  constexpr std::string_view directory = "/dev/";
  while (source.starts_with(directory)) {
    const auto end = std::min(source.find(":/dev/"), source.size());
    addMount(source.substr(0, end), viewer, path);
    source.remove_prefix(std::min(end + 1, source.size()));
  }
}

void MountTable::addMount(std::string_view device, const Viewer& viewer, std::string_view path) {
  auto& mounts = mounts_[std::string(device)];
  const bool ours = viewer.owner.empty();
  if (mounts.size() < mountLimit &&
      (ours || std::ranges::find(mounts, path, &MountPoint::path) == mounts.end())) {
    mounts.push_back({std::string(path), viewer.owner});
  }
}

std::vector<MountPoint> MountTable::mountsOf(const MountSource& source) const {
  std::vector<MountPoint> mounts;
  for (const std::string& device : {source.number, source.file}) {
    if (const auto found = mounts_.find(device); found != mounts_.end()) {
      mounts.insert(mounts.end(), found->second.begin(), found->second.end());
    }
  }
  return mounts;
}

bool MountTable::isSwap(std::string_view file) const {
  return std::ranges::find(swaps_, file) != swaps_.end();
}

}  // namespace vfpass::host
