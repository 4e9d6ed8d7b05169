#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace vfpass::domain {

/// Position of one element in an XML text, as byte offsets.
struct ElementSpan {
  std::size_t begin = 0;         ///< of its `<`
  std::size_t contentBegin = 0;  ///< after the start tag; equals `end` for `<a/>`
  std::size_t contentEnd = 0;    ///< at the end tag's `<`; equals `end` for `<a/>`
  std::size_t end = 0;           ///< after its last `>`

  [[nodiscard]] bool selfClosing() const { return contentBegin == end; }
};

/// libvirt's own elements are nested 10 levels at most; see own_metadata.hpp for `<metadata>`.
inline constexpr std::size_t maxNesting = 128;

/// All elements in document order, so sorted by `begin`. Not recursive. Throws Error
/// (ExitCode::badInput) for text that is nested more deeply, has a DOCTYPE or has unbalanced tags.
/// Does not check names and attributes; the XML parser does.
std::vector<ElementSpan> scanElements(std::string_view xml);

}  // namespace vfpass::domain
