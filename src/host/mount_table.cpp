#include "mount_table.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t tableLimit = std::size_t{8} << 20U;

// The number-th word of a line, counted from 0; empty when there are fewer.
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
// type, source. Btrfs shows a number of its own, and the device only as the source.
bool isFrom(std::string_view line, const MountSource& source) {
  constexpr std::string_view separator = " - ";
  if (!source.number.empty() && word(line, 2) == source.number) {
    return true;
  }
  const auto end = line.find(separator);
  return end != std::string_view::npos &&
         word(line.substr(end + separator.size()), 1) == source.file;
}

}  // namespace

MountTable::MountTable(const Root& root)
    : mounts_(readLines(root, "proc/self/mountinfo")), swaps_(readLines(root, "proc/swaps")) {}

std::vector<std::string> MountTable::readLines(const Root& root, const std::string& path) {
  // One more byte than needed: the last newline is trimmed away.
  const std::string text = root.readText(path, tableLimit + 2).value_or("");
  complete_ = complete_ && text.size() <= tableLimit;
  return splitLines(text);
}

std::vector<std::string> MountTable::mountsOf(const MountSource& source) const {
  std::vector<std::string> places;
  for (const std::string& line : mounts_) {
    if (isFrom(line, source)) {
      places.emplace_back(word(line, 4));
    }
  }
  return places;
}

bool MountTable::isSwap(std::string_view file) const {
  return std::any_of(swaps_.begin(), swaps_.end(),
                     [file](const std::string& line) { return word(line, 0) == file; });
}

}  // namespace vfpass::host
