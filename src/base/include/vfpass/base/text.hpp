#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

/// The whole of `text` as a number in this base; nullopt for signs, spaces, rubbish and overflow.
std::optional<std::uint64_t> parseNumber(std::string_view text, int base = 10);

/// `bytes` as two lower-case hexadecimal digits each, with `separator` between them.
std::string hexBytes(std::span<const std::uint8_t> bytes, std::string_view separator);

/// Reads hexadecimal digit pairs with one separator character between all of them (none: 0) into
/// `bytes`; false when the text is anything else.
bool parseHexBytes(std::string_view text, char separator, std::span<std::uint8_t> bytes);

std::string_view trim(std::string_view text);
std::vector<std::string> splitLines(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string toLower(std::string_view text);

/// The candidate that `word` was probably meant to be; nullopt when none is near enough.
std::optional<std::string> closestSpelling(std::string_view word,
                                           const std::vector<std::string>& candidates);

/// Text from outside made safe for terminals and logs: control characters (also C1) and bytes that
/// are not UTF-8 become `\xNN`. Domain names may hold newlines and terminal codes.
std::string printable(std::string_view text);

/// The same for a message that is about to be printed: line ends stay. Names in it must have been
/// made printable before, or they could forge lines; this is what catches a forgotten one.
std::string printableLines(std::string_view text);

/// The same on one line, for logs: line ends become spaces.
std::string printableLine(std::string_view text);

/// The system's words for an errno value, with its symbolic name: `Device or resource busy
/// (EBUSY)`.
std::string errnoText(int error);

}  // namespace vfpass
