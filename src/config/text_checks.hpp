#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "located_tree.hpp"

namespace vfpass::config {

/// The first thing in a text that no configuration file needs.
struct TextFault {
  std::size_t offset = 0;
  std::string message;
  std::string hint;
};

/// Invalid UTF-8, byte order marks, control characters other than line ends and tabs, and invisible
/// characters that make a text read otherwise than it is.
std::optional<TextFault> checkFileText(std::string_view text);

/// The same for one value, where neither line ends nor tabs belong: escapes such as "\x1b" in
/// double quotes only become characters while YAML is read.
std::optional<TextFault> checkValueText(std::string_view text);

/// Turns byte offsets into lines and columns of characters, as editors count them (yaml-cpp counts
/// columns in bytes).
class LineIndex {
 public:
  explicit LineIndex(std::string_view text);

  /// Offsets behind the end give the end; negative ones (yaml-cpp: unknown) the start.
  [[nodiscard]] Position positionOf(long offset) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> lineStarts_;
  // The last answer. The parser asks in file order, so that counting goes on from there: a file can
  // be one line of a megabyte with thousands of values.
  mutable std::size_t lastOffset_ = 0;
  mutable Position last_;
};

}  // namespace vfpass::config
