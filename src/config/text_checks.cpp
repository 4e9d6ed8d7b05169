#include "yaml_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace vfpass::config {
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

}  // namespace vfpass::config
