#include "udev_tokens.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::string_view operatorLetters = "=!+-:";

std::size_t endOfKey(std::string_view rule, std::size_t at) {
  for (bool braced = false; at < rule.size(); ++at) {
    braced = rule[at] == '{' || (braced && rule[at] != '}');
    if (!braced && (operatorLetters.find(rule[at]) != std::string_view::npos || rule[at] == '"')) {
      break;
    }
  }
  return at;
}

// The quotation mark at the end of a value; a backslash protects one within it.
std::size_t endOfValue(std::string_view rule, std::size_t at) {
  while (at < rule.size() && rule[at] != '"') {
    at += rule[at] == '\\' ? 2 : 1;
  }
  return std::min(at, rule.size());
}

}  // namespace

std::vector<UdevToken> udevTokens(std::string_view rule) {
  std::vector<UdevToken> tokens;
  std::size_t at = 0;
  while ((at = rule.find_first_not_of(" \t\v,", at)) != std::string_view::npos) {
    UdevToken token;
    token.keyAt = at;
    const auto keyEnd = endOfKey(rule, at);
    token.key = trim(rule.substr(at, keyEnd - at));
    const auto quote = std::min(rule.find('"', keyEnd), rule.size());
    const auto operation = trim(rule.substr(keyEnd, quote - keyEnd));
    token.assigns =
        !operation.starts_with("==") && !operation.starts_with("!=") && !operation.empty();
    token.valueAt = std::min(quote + 1, rule.size());
    const auto end = endOfValue(rule, token.valueAt);
    token.value = rule.substr(token.valueAt, end - token.valueAt);
    tokens.push_back(std::move(token));
    at = end + 1;
    if (at >= rule.size()) {
      break;
    }
  }
  return tokens;
}

}  // namespace vfpass::doctor
