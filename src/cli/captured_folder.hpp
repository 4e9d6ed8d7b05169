#pragma once

#include <filesystem>
#include <string>

#include "captured_tree.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::cli {

/// Writes a captured tree below one directory, and nowhere else: each component is opened from the
/// one above without following links, so that nobody who can write in between leads a file of root
/// elsewhere.
class CapturedFolder {
 public:
  /// Creates the directory, or takes an empty one that belongs to the caller and that others cannot
  /// write. Throws Error: badInput for any other one, a link included.
  explicit CapturedFolder(const std::filesystem::path& folder);

  /// `path` is relative. Throws Error when something has that name already.
  void write(const std::string& path, const host::RecordedEntry& entry) const;

 private:
  [[nodiscard]] FileDescriptor parentOf(const std::filesystem::path& path) const;
  [[nodiscard]] FileDescriptor below(const FileDescriptor& parent, const std::string& name,
                                     const std::filesystem::path& path) const;

  std::filesystem::path folder_;
  FileDescriptor root_;
};

}  // namespace vfpass::cli
