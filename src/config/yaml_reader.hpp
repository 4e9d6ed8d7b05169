#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem_list.hpp"
#include "yaml_tree.hpp"

namespace vfpass::config {

/// Reads one YAML document into a tree with places. Refuses what yaml-cpp accepts but other readers
/// may interpret differently: duplicate keys, aliases, anchors, tags, several documents, ambiguous
/// numbers, control characters. Depth and number of values are limited. Returns nullopt, after
/// reporting a problem, if there is no tree.
std::optional<Node> readYaml(const std::string& text, ProblemList& problems);

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

/// The kind of number that an unquoted text may be to some YAML readers and not to others, as a
/// phrase that completes "looks like ..."; nullopt if all readers agree. yaml-cpp reads `010` as 8
/// and `0x64` as 100; YAML 1.1 reads `12:30` as 750 and `1_000` as 1000.
std::optional<std::string> ambiguousNumber(std::string_view text);

/// Sets kind and value of a node from an unquoted text. `yes`, `no`, `on` and `off` are booleans,
/// as in yaml-cpp and netplan.
void classifyPlainScalar(std::string_view text, Node& node);

}  // namespace vfpass::config
