#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace vfpass::host
