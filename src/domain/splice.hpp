#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "element_spans.hpp"

namespace vfpass::domain {

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
