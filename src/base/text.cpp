#include "vfpass/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <iterator>
#include <numeric>
#include <string_view>

namespace vfpass {
namespace {

std::optional<std::uint8_t> hexByte(std::string_view pair) {
  const auto value = parseNumber(pair, 16);
  if (pair.size() != 2 || !value) {
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(*value);
}

std::size_t editDistance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substitution = diagonal + (left[i - 1] == right[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[right.size()];
}

// Not utfcpp (libutfcpp-dev): it could replace only this function, for one more dependency.
// Length of the UTF-8 sequence at the start of `text`; 0 when it is invalid (overlong, a surrogate,
// out of range, or truncated).
std::size_t utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) {
      return 0;
    }
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : length;
}

// The code point of a valid UTF-8 sequence.
char32_t codePoint(std::string_view sequence) {
  constexpr std::uint8_t leadBits[] = {0x7f, 0x1f, 0x0f, 0x07};
  char32_t value = static_cast<unsigned char>(sequence[0]) & leadBits[sequence.size() - 1];
  for (const char each : sequence.substr(1)) {
    value = value << 6U | (static_cast<unsigned char>(each) & 0x3fU);
  }
  return value;
}

struct CodePoints {
  char32_t first;
  char32_t last;
};

// Code points that change how other text appears, or do not appear themselves: the general
// categories Cc, Cf, Zl and Zp, and the property Default_Ignorable_Code_Point, of Unicode 15.
// Directional controls reorder the rest of a line, and a name with a zero-width character looks
// like another name. U+0080 to U+009F are the eight-bit forms of ESC sequences.
constexpr CodePoints invisible[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
    {0x0600, 0x0605},   {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},
    {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

bool isInvisible(std::string_view sequence) {
  const char32_t value = codePoint(sequence);
  return std::any_of(std::begin(invisible), std::end(invisible), [value](const CodePoints& each) {
    return each.first <= value && value <= each.last;
  });
}

}  // namespace

std::optional<std::uint64_t> parseNumber(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string hexBytes(std::span<const std::uint8_t> bytes, std::string_view separator) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    if (!text.empty()) {
      text += separator;
    }
    text += digits[byte >> 4U];
    text += digits[byte & 0x0fU];
  }
  return text;
}

std::string hexadecimal(std::uint16_t number) {
  const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(number >> 8U),
                                          static_cast<std::uint8_t>(number & 0xffU)};
  return "0x" + hexBytes(bytes, "");
}

bool parseHexBytes(std::string_view text, char separator, std::span<std::uint8_t> bytes) {
  const std::size_t gap = separator == 0 ? 0 : 1;
  if (bytes.empty() || text.size() != bytes.size() * 2 + (bytes.size() - 1) * gap) {
    return false;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = i * (2 + gap);
    const auto value = hexByte(text.substr(at, 2));
    if (!value || (gap == 1 && i > 0 && text[at - 1] != separator)) {
      return false;
    }
    bytes[i] = *value;
  }
  return true;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> splitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const auto& part : parts) {
    if (&part != &parts.front()) {
      text += separator;
    }
    text += part;
  }
  return text;
}

std::string joinNumbers(const std::set<int>& numbers) {
  std::vector<std::string> parts;
  for (const int number : numbers) {
    parts.push_back(std::to_string(number));
  }
  return join(parts, ", ");
}

std::string joinFirst(const std::vector<std::string>& parts, std::size_t most) {
  if (parts.size() <= most) {
    return join(parts, ", ");
  }
  const auto end = parts.begin() + static_cast<std::ptrdiff_t>(most);
  return join({parts.begin(), end}, ", ") + ", and " + std::to_string(parts.size() - most) +
         " more";
}

std::string counted(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string toLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::optional<std::string> closestSpelling(std::string_view word,
                                           const std::vector<std::string>& candidates,
                                           std::size_t mostEdits) {
  std::optional<std::string> best;
  std::size_t limit = std::min(mostEdits, word.size() / 3 + 1);
  for (const auto& candidate : candidates) {
    if (std::max(word.size(), candidate.size()) > std::min(word.size(), candidate.size()) + limit) {
      continue;
    }
    const std::size_t distance = editDistance(toLower(word), toLower(candidate));
    if (distance <= limit && (!best || distance < limit)) {
      best = candidate;
      limit = distance;
    }
  }
  return best;
}

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = utf8Length(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || isInvisible(sequence)) {
      for (const char c : sequence) {
        const auto byte = static_cast<std::uint8_t>(c);
        safe += "\\x" + hexBytes({&byte, 1}, "");
      }
    } else {
      safe += sequence;
    }
    text.remove_prefix(sequence.size());
  }
  return safe;
}

std::string printableLines(std::string_view text) {
  std::string safe;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    safe += printable(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return safe + printable(text);
}

std::string printableLine(std::string_view text) {
  std::string line = printableLines(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string utcNow() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string errnoText(int error) {
  const char* words = strerrordesc_np(error);
  const char* name = strerrorname_np(error);
  if (words == nullptr || name == nullptr) {
    return "error " + std::to_string(error);
  }
  return std::string(words) + " (" + name + ")";
}

std::string shellQuoted(const std::string& word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._:@+-";
  if (!word.empty() && word.front() != '-' && word.find_first_not_of(plain) == std::string::npos) {
    return word;
  }
  std::string quoted = "'";
  for (const char letter : word) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

std::string shellArgument(const std::string& name) { return shellQuoted(printable(name)); }

}  // namespace vfpass
