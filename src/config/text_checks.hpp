#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "located_tree.hpp"

namespace vfpass::config {

/// The first unacceptable character or byte sequence in a text.
struct TextFault {
  std::size_t offset = 0;
  std::string message;
  std::string hint;
};

/// Finds invalid UTF-8, byte order marks, control characters other than line ends and tabs, and
/// invisible characters that disguise the text.
std::optional<TextFault> checkFileText(std::string_view text);

/// The same for one value, which must not contain line ends or tabs either. Needed in addition,
/// because escapes such as "\x1b" in double quotes become characters only when YAML is parsed.
std::optional<TextFault> checkValueText(std::string_view text);

/// Turns byte offsets into lines and columns of characters, as editors count them (yaml-cpp counts
/// columns in bytes).
class LineIndex {
 public:
  explicit LineIndex(std::string_view text);

  /// Offsets past the end give the end; negative ones (unknown in yaml-cpp) the start.
  [[nodiscard]] Position positionOf(long offset) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> lineStarts_;
  // The last result. The parser asks in file order, and counting continues from here: a file can be
  // a single line of 1 MiB with thousands of values.
  mutable std::size_t lastOffset_ = 0;
  mutable Position last_;
};

}  // namespace vfpass::config
