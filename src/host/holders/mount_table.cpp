#include "holders/mount_table.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t tableLimit = std::size_t{8} << 20U;

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

// proc(5): mount id, parent id, major:minor, root, mount point, options, optional fields, `-`,
// type, source. Btrfs shows an anonymous device number, and the block device only as the source.
bool isFrom(std::string_view line, const MountSource& source) {
  constexpr std::string_view separator = " - ";
  if (!source.number.empty() && word(line, 2) == source.number) {
    return true;
  }
  const auto end = line.find(separator);
  return end != std::string_view::npos &&
         word(line.substr(end + separator.size()), 1) == source.file;
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

std::vector<std::string> linesOf(const std::string& text, bool& complete) {
  complete = complete && text.size() <= tableLimit;
  return splitLines(text);
}

// Reads one extra byte, because the last newline is trimmed.
std::optional<std::string> readTable(const Root& root, const std::string& path) {
  return root.readText(path, tableLimit + 2);
}

}  // namespace

MountTable::MountTable(const Root& root) {
  readNamespace(root, "self", {});
  swaps_ = linesOf(readTable(root, "proc/swaps").value_or(""), complete_);
}

MountTable::MountTable(const Root& root, const std::vector<Process>& processes) : MountTable(root) {
  const auto ours = namespaceInode(root.linkTarget("proc/self/ns/mnt").value_or(""), "mnt");
  std::map<std::uint64_t, bool> read;
  for (const Process& process : processes) {
    const auto inode = process.mountNamespace;
    if (!inode || inode == ours || read[*inode]) {
      continue;
    }
    read[*inode] = readNamespace(root, process.id, describe(process));
    // A process that has ended cannot be read; its namespace may have other processes.
    complete_ = complete_ && (read[*inode] || !root.exists("proc/" + process.id + "/ns"));
  }
}

bool MountTable::readNamespace(const Root& root, const std::string& process,
                               const std::string& owner) {
  const auto table = readTable(root, "proc/" + process + "/mountinfo");
  if (table) {
    namespaces_.push_back({process, owner, linesOf(*table, complete_)});
  }
  return table.has_value();
}

std::vector<MountPoint> MountTable::mountsOf(const MountSource& source) const {
  std::vector<MountPoint> mounts;
  for (const Namespace& each : namespaces_) {
    for (const std::string& line : each.lines) {
      if (!isFrom(line, source)) {
        continue;
      }
      const std::string path(word(line, 4));
      const bool ours = each.owner.empty();
      if (ours || std::ranges::find(mounts, path, &MountPoint::path) == mounts.end()) {
        mounts.push_back({path, each.owner});
      }
    }
  }
  return mounts;
}

// A mounted namespace is an nsfs file whose root is `net:[INODE]`.
std::vector<MountedNamespace> MountTable::networkNamespaces() const {
  std::vector<MountedNamespace> found;
  for (const Namespace& each : namespaces_) {
    for (const std::string& line : each.lines) {
      if (const auto inode = namespaceInode(word(line, 3), "net")) {
        found.push_back({*inode, unescaped(word(line, 4)), each.process});
      }
    }
  }
  return found;
}

bool MountTable::isSwap(std::string_view file) const {
  return std::any_of(swaps_.begin(), swaps_.end(),
                     [file](const std::string& line) { return word(line, 0) == file; });
}

}  // namespace vfpass::host
