#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {

/// One file, link or directory that was read.
struct RecordedEntry {
  enum class Kind { file, link, directory };
  Kind kind = Kind::file;
  std::string content;  ///< the bytes read from a file, or the target of a link
};

/// Everything that was read below a Root, and nothing else: reading a snapshot of it has the same
/// results. Paths are relative to the root, with all links resolved.
class Recording {
 public:
  /// `root` is the absolute path of the Root and contains no links.
  explicit Recording(std::string root);

  void noteBytes(int file, std::size_t offset, std::string_view bytes);
  void noteLink(int link, std::string_view target);
  /// Records links and directories by name; files are only recorded when they are read.
  void noteNames(int directory, const std::vector<std::string>& names);
  void noteFound(int object);
  /// Records a file that was read in another process.
  void noteText(int directory, const std::string& name, const std::string& text);

  [[nodiscard]] const std::map<std::string, RecordedEntry>& entries() const { return entries_; }

 private:
  [[nodiscard]] std::string pathOf(int descriptor) const;
  RecordedEntry* enter(const std::string& path, RecordedEntry::Kind kind);

  std::string root_;
  std::map<std::string, RecordedEntry> entries_;
};

/// The directory that contains sysfs and procfs: `/`, or a captured tree. Paths are relative
/// (`sys/bus/pci/devices`). In a captured tree, links cannot lead out of the tree.
/// Devices may disappear while they are read, so a missing file is an empty result, not an error.
/// Without a free descriptor, which says nothing about a file, every function throws Error.
class Root {
 public:
  /// Throws Error when `path` is not a directory that can be opened.
  explicit Root(const std::filesystem::path& path = "/");

  /// The running system, as opposed to a captured tree.
  [[nodiscard]] bool isLive() const { return live_; }

  /// openat(2) below this root, with O_CLOEXEC. On any other failure the descriptor is closed and
  /// errno is set.
  [[nodiscard]] FileDescriptor open(const std::string& path, int flags) const;

  /// The first `limit` bytes of a regular file, without surrounding white space.
  [[nodiscard]] std::optional<std::string> readText(const std::string& path,
                                                    std::size_t limit = 4096) const;
  /// A regular file's content as an unsigned number: decimal, or hexadecimal after `0x`.
  [[nodiscard]] std::optional<std::uint64_t> readNumber(const std::string& path) const;
  /// Names in a directory that begin with `prefix`, sorted, without `.` and `..`; at most 65536.
  [[nodiscard]] std::vector<std::string> list(const std::string& path,
                                              std::string_view prefix = {}) const;
  /// The target of a symbolic link.
  [[nodiscard]] std::optional<std::string> linkTarget(const std::string& path) const;
  /// The last component of a link's target: the name of a driver, group or device in sysfs.
  [[nodiscard]] std::optional<std::string> linkName(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;

  /// Records everything that is read from now on, for `vfpass snapshot`. `recording` must outlive
  /// this root and every copy of the pointer that recording() returns.
  void recordInto(Recording& recording) { recording_ = &recording; }
  [[nodiscard]] Recording* recording() const { return recording_; }

 private:
  FileDescriptor directory_;
  bool live_ = false;
  Recording* recording_ = nullptr;
};

/// Up to `length` bytes of an open file starting at `offset`; fewer at its end or after an error.
std::string readBytes(int descriptor, std::size_t offset, std::size_t length);

/// One open directory below a Root: reading ten files of a device resolves its long path once
/// instead of ten times. Names are relative (`class`, `net/eth0/ifindex`); in a captured tree links
/// in them are not followed. False when there is no such directory.
class Folder {
 public:
  Folder(const Root& root, const std::string& path);
  Folder(const Folder& parent, const std::string& name);

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(directory_); }

  /// The first 4096 bytes of a regular file, the maximum length of a sysfs attribute. Not trimmed.
  [[nodiscard]] std::optional<std::string> readText(const std::string& name) const;
  [[nodiscard]] std::optional<std::uint64_t> readNumber(const std::string& name) const;
  /// Up to `length` bytes starting at `offset`; fewer at the end of the file.
  [[nodiscard]] std::string readBytes(const std::string& name, std::size_t offset,
                                      std::size_t length) const;
  [[nodiscard]] std::vector<std::string> list(const std::string& name,
                                              std::string_view prefix = {}) const;
  [[nodiscard]] std::optional<std::string> linkTarget(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> linkName(const std::string& name) const;

 private:
  [[nodiscard]] FileDescriptor open(const std::string& name, int flags) const;

  FileDescriptor directory_;
  bool live_;
  Recording* recording_;
};

}  // namespace vfpass::host
