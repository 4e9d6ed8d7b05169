#include "splice.hpp"

#include <algorithm>

namespace vfpass::domain {
namespace {

// Position of the line break before `at` if only blanks lie between, otherwise npos.
std::size_t lineBreakBefore(std::string_view text, std::size_t at) {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) {
    --at;
  }
  return at > 0 && text[at - 1] == '\n' ? at - 1 : std::string_view::npos;
}

}  // namespace

std::string applySplices(std::string_view text, std::vector<Splice> splices) {
  std::stable_sort(splices.begin(), splices.end(),
                   [](const Splice& a, const Splice& b) { return a.begin < b.begin; });
  std::string result;
  std::size_t copied = 0;
  for (const auto& splice : splices) {
    result += text.substr(copied, splice.begin - copied);
    result += splice.replacement;
    copied = splice.end;
  }
  return result += text.substr(copied);
}

bool isBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Splice removal(std::string_view text, const ElementSpan& span) {
  const auto line = lineBreakBefore(text, span.begin);
  return {line == std::string_view::npos ? span.begin : line, span.end, {}};
}

std::string indentationOf(std::string_view text, const ElementSpan& span,
                          std::string_view fallback) {
  const auto line = lineBreakBefore(text, span.begin);
  return std::string(line == std::string_view::npos ? fallback
                                                    : text.substr(line + 1, span.begin - line - 1));
}

}  // namespace vfpass::domain
