#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace vfpass::domain {

/// Where one element stands in an XML text, as byte offsets.
struct ElementSpan {
  std::size_t begin = 0;         ///< of its `<`
  std::size_t contentBegin = 0;  ///< after the start tag; equals `end` for `<a/>`
  std::size_t contentEnd = 0;    ///< at the end tag's `<`; equals `end` for `<a/>`
  std::size_t end = 0;           ///< after its last `>`

  [[nodiscard]] bool selfClosing() const { return contentBegin == end; }
};

inline constexpr std::size_t deepestNesting = 128;
inline constexpr std::size_t mostElements = 200'000;

/// All elements in document order (so sorted by `begin`). It works without recursion and refuses
/// what is nested deeper or holds more elements than the limits above, any DOCTYPE, and text whose
/// tags do not pair up: Error (ExitCode::badInput). Names and attributes are left to the XML
/// parser.
std::vector<ElementSpan> scanElements(std::string_view xml);

}  // namespace vfpass::domain
