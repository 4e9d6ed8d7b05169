#include <algorithm>

#include "vfpass/base/unified_diff.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

bool isSpace(char character) {
  return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}

std::size_t skipSpaces(std::string_view text, std::size_t at) {
  while (at < text.size() && isSpace(text[at])) {
    ++at;
  }
  return at;
}

// End of the value whose opening quote is at `quote`; end of text if it is not closed.
std::size_t valueEnd(std::string_view text, std::size_t quote) {
  return std::min(text.find(text[quote], quote + 1), text.size());
}

// Replaces the values of passwd attributes by `***`, also across lines.
std::string masked(std::string_view text) {
  constexpr std::string_view name = "passwd";
  std::string result;
  std::size_t copied = 0;
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const auto equals = skipSpaces(text, at + name.size());
    const auto quote = skipSpaces(text, equals + 1);
    const bool attribute = at > 0 && isSpace(text[at - 1]) && quote < text.size() &&
                           text[equals] == '=' && (text[quote] == '\'' || text[quote] == '"');
    if (attribute && at >= copied) {
      result.append(text.substr(copied, quote + 1 - copied)).append("***");
      copied = valueEnd(text, quote);
    }
  }
  return result.append(text.substr(copied));
}

}  // namespace

std::string xmlDiff(std::string_view before, std::string_view after) {
  return unifiedDiff(masked(before), masked(after));
}

}  // namespace vfpass::domain
