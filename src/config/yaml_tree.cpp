#include "yaml_tree.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "vfpass/base/text.hpp"
#include "yaml_reader.hpp"

namespace vfpass::config {
namespace {

constexpr std::size_t longestQuote = 60;
constexpr std::size_t mostKeysShown = 4;

std::string describeKeys(const std::vector<Key>& keys) {
  std::string text = keys.size() == 1 ? "the key " : "the keys ";
  const std::size_t shown = std::min(keys.size(), mostKeysShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == keys.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + quoteForMessage(keys[i].text);
  }
  return keys.size() > shown ? text + " and others" : text;
}

}  // namespace

const Node* find(const Node& node, std::string_view key) {
  if (node.kind != NodeKind::block) {
    return nullptr;
  }
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    if (node.keys[i].text == key) {
      return &node.items[i];
    }
  }
  return nullptr;
}

Node* find(Node& node, std::string_view key) {
  return const_cast<Node*>(find(static_cast<const Node&>(node), key));
}

Node* findSound(Node& node, std::string_view key) {
  Node* const value = find(node, key);
  return value == nullptr || value->refused ? nullptr : value;
}

std::span<Node> entriesOf(Node& node, std::string_view key) {
  Node* const list = findSound(node, key);
  return list == nullptr || list->kind != NodeKind::list ? std::span<Node>() : list->items;
}

std::optional<std::string> textOf(const Node* node) {
  if (node == nullptr || node->refused || node->kind != NodeKind::text) {
    return std::nullopt;
  }
  return node->text;
}

std::optional<bool> booleanOf(const Node* node) {
  if (node == nullptr || node->refused || node->kind != NodeKind::boolean) {
    return std::nullopt;
  }
  return node->boolean;
}

std::optional<unsigned> unsignedOf(const Node* node) {
  if (node == nullptr || node->refused || node->kind != NodeKind::integer || node->integer < 0 ||
      node->integer > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
    return std::nullopt;
  }
  return static_cast<unsigned>(node->integer);
}

std::string quoteForMessage(std::string_view text) {
  std::size_t end = std::min(text.size(), longestQuote);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;  // never cut inside a UTF-8 sequence
  }
  return "`" + printable(text.substr(0, end)) + (end < text.size() ? "..." : "") + "`";
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case NodeKind::null:
      return "nothing";
    case NodeKind::boolean:
      return "the boolean " + quoteForMessage(node.text);
    case NodeKind::list:
      return node.items.empty() ? "an empty list"
                                : "a list of " + std::to_string(node.items.size());
    case NodeKind::block:
      return node.keys.empty() ? "an empty block" : describeKeys(node.keys);
    default:
      return node.text.empty() ? "an empty string" : quoteForMessage(node.text);
  }
}

namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  ///< 0: not valid UTF-8
};

std::size_t sequenceLength(unsigned char first) {
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first < 0xe0) {
    return 2;
  }
  if (first >= 0xe0 && first < 0xf0) {
    return 3;
  }
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

CodePoint decode(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = sequenceLength(first);
  if (length == 0 || length > text.size()) {
    return {};
  }
  static constexpr std::array<unsigned, 5> payload{0, 0x7f, 0x1f, 0x0f, 0x07};
  static constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  char32_t value = first & payload.at(length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80U) {
      return {};
    }
    value = value << 6U | (byte & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  return value < smallest.at(length) || surrogate || value > 0x10ffff ? CodePoint{}
                                                                      : CodePoint{value, length};
}

bool isControl(char32_t value) { return value < 0x20 || (value >= 0x7f && value < 0xa0); }

// Line separators, zero-width characters and direction overrides ("Trojan Source").
bool isInvisible(char32_t value) {
  return (value >= 0x200b && value <= 0x200f) || (value >= 0x2028 && value <= 0x202e) ||
         (value >= 0x2060 && value <= 0x2069) || value == 0xfeff || value == 0x61c;
}

std::string codeName(char32_t value) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "U+%04X", static_cast<unsigned>(value));
  return buffer.data();
}

bool isLineEndOrTab(std::string_view text) {
  return text[0] == '\n' || text[0] == '\t' || text.substr(0, 2) == "\r\n";
}

std::optional<TextFault> check(std::string_view text, bool wholeFile) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text.substr(at));
    if (point.length == 0) {
      return TextFault{at, "not valid UTF-8", "save the file as UTF-8"};
    }
    if (wholeFile && at == 0 && point.value == 0xfeff) {
      return TextFault{at, "the file begins with a byte order mark",
                       "save it as UTF-8 without a byte order mark"};
    }
    const bool allowed = wholeFile && isLineEndOrTab(text.substr(at));
    if (!allowed && (isControl(point.value) || isInvisible(point.value))) {
      return TextFault{at, "found the control or invisible character " + codeName(point.value),
                       "remove it"};
    }
    at += point.length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TextFault> checkFileText(std::string_view text) { return check(text, true); }

std::optional<TextFault> checkValueText(std::string_view text) { return check(text, false); }

LineIndex::LineIndex(std::string_view text) : text_(text), lineStarts_{0} {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') {
      lineStarts_.push_back(at + 1);
    }
  }
}

Position LineIndex::positionOf(long offset) const {
  const std::size_t at = offset < 0 ? 0 : std::min(static_cast<std::size_t>(offset), text_.size());
  const auto next = std::upper_bound(lineStarts_.begin(), lineStarts_.end(), at);
  const std::size_t start = *(next - 1);
  const bool goesOn = lastOffset_ >= start && lastOffset_ <= at;
  const std::size_t from = goesOn ? lastOffset_ : start;
  const auto characters =
      std::count_if(text_.begin() + static_cast<long>(from), text_.begin() + static_cast<long>(at),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
  last_ = {static_cast<int>(next - lineStarts_.begin()),
           (goesOn ? last_.column : 1) + static_cast<int>(characters)};
  lastOffset_ = at;
  return last_;
}

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
