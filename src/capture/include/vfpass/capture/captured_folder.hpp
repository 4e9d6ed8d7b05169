#pragma once

#include <filesystem>
#include <string>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/capture/captured_tree.hpp"

namespace vfpass::capture {

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

 private:
  [[nodiscard]] FileDescriptor parentOf(const std::filesystem::path& path) const;
  [[nodiscard]] FileDescriptor below(const FileDescriptor& parent, const std::string& name,
                                     const std::filesystem::path& path) const;

  std::filesystem::path folder_;
  FileDescriptor root_;
};

}  // namespace vfpass::capture
