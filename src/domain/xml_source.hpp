#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/error.hpp"

namespace vfpass::domain {

/// The error for a text that is not a domain XML or cannot be trusted.
inline Error badXml(const std::string& reason) {
  return Error("invalid domain XML: " + reason,
               "inspect it with `virsh dumpxml` and correct it with `virsh edit`",
               ExitCode::badInput);
}

/// The error for invalid content of our metadata element. parseDomain() turns it into the domain's
/// `metadataProblem`.
inline Error badMetadata(const std::string& reason) {
  return Error(reason, {}, ExitCode::badInput);
}

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

/// Position of one element in an XML text, as byte offsets.
struct ElementSpan {
  std::size_t begin = 0;         ///< of its `<`
  std::size_t contentBegin = 0;  ///< after the start tag; equals `end` for `<a/>`
  std::size_t contentEnd = 0;    ///< at the end tag's `<`; equals `end` for `<a/>`
  std::size_t end = 0;           ///< after its last `>`

  [[nodiscard]] bool selfClosing() const { return contentBegin == end; }
};

/// libvirt's own elements are nested 10 levels at most; see document.hpp for `<metadata>`.
inline constexpr std::size_t maxNesting = 128;

/// All elements in document order, so sorted by `begin`. Not recursive. Throws Error
/// (ExitCode::badInput) for text that is nested more deeply, has a DOCTYPE or has unbalanced tags.
/// Does not check names and attributes; the XML parser does.
std::vector<ElementSpan> scanElements(std::string_view xml);

/// Replaces the bytes [begin, end) of a text; begin == end inserts.
struct Splice {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string replacement;
};

/// Applies splices that do not overlap; insertions at the same position keep their order.
std::string applySplices(std::string_view text, std::vector<Splice> splices);

/// True for white space only.
bool isBlank(std::string_view text);

/// Removes an element together with the line break and indentation before it.
Splice removal(std::string_view text, const ElementSpan& span);

/// The indentation before the element if it is the first on its line, otherwise `fallback`.
std::string indentationOf(std::string_view text, const ElementSpan& span,
                          std::string_view fallback);

}  // namespace vfpass::domain
