#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::capture {

/// Path below the tree's root, and the entry at that path.
using CapturedTree = std::map<std::string, host::RecordedEntry>;

/// The part of a recording that a snapshot keeps. Of /proc: the first processor of cpuinfo, the
/// kernel version, the kernel arguments that concern devices, and the ARP settings; the rest
/// describes the host's processes and mounts. Of text files outside sysfs: the settings that doctor
/// looks for, because such files can contain passwords. Link targets are kept unchanged: those of
/// sysfs are relative.
CapturedTree keptOf(const host::Recording& recording);

/// Writes the tree to a new or empty directory (see CapturedFolder). Throws Error if the directory
/// is not empty or a write fails; then nothing of it remains.
void writeFolder(const CapturedTree& tree, const std::filesystem::path& folder);

/// Writes the tree to a new file, which a failure removes. The same tree gives the same bytes:
/// entries are sorted by name and have no times and owners.
void writeTar(const CapturedTree& tree, const std::filesystem::path& file);

/// Writes a captured tree below one directory and nowhere else. Each path component is opened
/// relative to its parent without following symbolic links, so that another user cannot redirect
/// root's writes by replacing a component.
class CapturedFolder {
 public:
  /// Creates the directory, or uses an existing one that is empty, owned by the caller and not
  /// writable by others. Throws Error (badInput) for any other, including a symbolic link.
  explicit CapturedFolder(const std::filesystem::path& folder);

  /// `path` is relative. Throws Error if it already exists.
  void write(const std::string& path, const host::RecordedEntry& entry) const;

  /// Removes what write() has written, and the directory if the constructor has created it. What
  /// others have put there stays, with the directories around it.
  void clear() const;

 private:
  /// An entry that write() has made.
  struct Made {
    std::filesystem::path path;
    bool isDirectory = false;
  };

  [[nodiscard]] FileDescriptor parentOf(const std::filesystem::path& path) const;
  /// Opens this directory, the last component of whose path is in `parent`, or creates it. `path`:
  /// the entry for which it is needed, for errors.
  [[nodiscard]] FileDescriptor below(const FileDescriptor& parent,
                                     const std::filesystem::path& directory,
                                     const std::filesystem::path& path) const;
  void remove(const Made& made) const;

  std::filesystem::path folder_;
  FileDescriptor root_;
  bool created_ = false;
  mutable std::vector<Made> made_;  ///< parents first
};

}  // namespace vfpass::capture
