#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace vfpass::domain {

/// A start tag, an end tag, or both in one (`<a/>`), as byte offsets.
struct Tag {
  enum class Kind { start, end, both };

  std::size_t begin = 0;  ///< of its `<`
  std::size_t end = 0;    ///< after its `>`
  Kind kind = Kind::start;
};

/// Reads the tags of an XML text one by one, in one pass and without recursion. Does not check
/// names and attributes; the XML parser does.
class TagReader {
 public:
  explicit TagReader(std::string_view xml) : xml_(xml) {}

  /// The next tag; nullopt after the last one. Skips comments, CDATA and processing instructions.
  /// Throws Error (ExitCode::badInput) for a DOCTYPE and for markup that does not end.
  std::optional<Tag> next();

  /// The tag's name, with its prefix.
  [[nodiscard]] std::string_view nameOf(const Tag& tag) const;

 private:
  std::optional<Tag> readMarkup();
  [[nodiscard]] std::size_t startTagEnd(std::size_t at) const;
  [[nodiscard]] std::size_t after(std::string_view mark, std::size_t from) const;

  std::string_view xml_;
  std::size_t at_ = 0;
};

}  // namespace vfpass::domain
