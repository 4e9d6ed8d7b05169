#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

/// One object that was looked at.
struct RecordedEntry {
  enum class Kind { file, link, directory };
  Kind kind = Kind::file;
  std::string content;  ///< what was read of a file; what a link says
};

/// What was read below a Root, and no more: a snapshot of it gives the same answers. Paths are
/// relative to the root and contain no links, whatever way led there.
class Recording {
 public:
  /// `root` is the absolute path of the Root without links in it.
  explicit Recording(std::string root);

  void noteBytes(int file, std::size_t offset, std::string_view bytes);
  void noteLink(int link, std::string_view target);
  /// Its links and folders are kept; files only once they are read.
  void noteNames(int directory, const std::vector<std::string>& names);
  void noteFound(int object);
  /// For what was read in another process.
  void noteText(int directory, const std::string& name, const std::string& text);

  [[nodiscard]] const std::map<std::string, RecordedEntry>& entries() const { return entries_; }

 private:
  [[nodiscard]] std::string pathOf(int descriptor) const;
  RecordedEntry* enter(const std::string& path, RecordedEntry::Kind kind);

  std::string root_;
  std::map<std::string, RecordedEntry> entries_;
};

}  // namespace vfpass::host
