#include "yaml_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

constexpr std::string_view digits = "0123456789";

bool consistsOf(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

std::string_view withoutSign(std::string_view text) {
  return text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
}

// Digits, then groups of one or two digits after colons, then an optional fraction: `0000:01:00.0`
// and `52:54:00:12:34:56` are numbers in YAML 1.1.
bool isBase60(std::string_view text) {
  const std::size_t fraction = text.find('.');
  if (fraction != std::string_view::npos && fraction + 1 < text.size() &&
      !consistsOf(text.substr(fraction + 1), "0123456789_")) {
    return false;
  }
  std::string_view rest = text.substr(0, fraction);
  std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos || !consistsOf(rest.substr(0, colon), "0123456789_")) {
    return false;
  }
  while (colon != std::string_view::npos) {
    rest.remove_prefix(colon + 1);
    colon = rest.find(':');
    const std::string_view group = rest.substr(0, colon);
    if (group.size() > 2 || !consistsOf(group, digits)) {
      return false;
    }
  }
  return true;
}

bool hasPrefixOf(std::string_view text, std::string_view prefix, std::string_view characters) {
  return toLower(text.substr(0, 2)) == prefix && consistsOf(text.substr(2), characters);
}

std::optional<bool> booleanWord(std::string_view text) {
  static constexpr std::array<std::string_view, 3> yes{"true", "yes", "on"};
  static constexpr std::array<std::string_view, 3> no{"false", "no", "off"};
  const std::string lower = toLower(text);
  if (std::ranges::find(yes, lower) != yes.end()) {
    return true;
  }
  if (std::ranges::find(no, lower) != no.end()) {
    return false;
  }
  return std::nullopt;
}

template <typename Number>
bool parseWhole(std::string_view text, Number& value) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool startsLikeNumber(std::string_view text) {
  const std::string_view magnitude = withoutSign(text);
  return !magnitude.empty() && (digits.find(magnitude[0]) != std::string_view::npos ||
                                (magnitude[0] == '.' && magnitude.size() > 1));
}

}  // namespace

std::optional<std::string> ambiguousNumber(std::string_view text) {
  const std::string_view number = withoutSign(text);
  if (number.empty() || digits.find(number[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  if (hasPrefixOf(number, "0x", "0123456789abcdefABCDEF_")) {
    return "a hexadecimal number";
  }
  if (hasPrefixOf(number, "0o", "01234567_") ||
      (number.size() > 1 && number[0] == '0' && consistsOf(number, "0123456789_"))) {
    return "an octal number";
  }
  if (hasPrefixOf(number, "0b", "01_")) {
    return "a binary number";
  }
  if (isBase60(number)) {
    return "a base-60 number";
  }
  if (number.find('_') != std::string_view::npos && consistsOf(number, "0123456789_.")) {
    return "a number with separators";
  }
  return std::nullopt;
}

void classifyPlainScalar(std::string_view text, Node& node) {
  node.text = text;
  node.kind = NodeKind::text;
  if (const auto boolean = booleanWord(text)) {
    node.kind = NodeKind::boolean;
    node.boolean = *boolean;
  } else if (startsLikeNumber(text)) {
    if (parseWhole(text, node.integer)) {
      node.kind = NodeKind::integer;
    } else if (parseWhole(text, node.number)) {
      node.kind = NodeKind::number;
    } else if (consistsOf(withoutSign(text), digits)) {
      node.kind = NodeKind::number;  // larger than any number that the schema accepts
      node.number = 1e300;
    }
  }
}

}  // namespace vfpass::config
