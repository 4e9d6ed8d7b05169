#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

/// Parses all of `text` as a number in this base; nullopt for signs, spaces, any other characters,
/// and overflow.
std::optional<std::uint64_t> parseNumber(std::string_view text, int base = 10);

/// `bytes` as two lower-case hexadecimal digits each, with `separator` between them.
std::string hexBytes(std::span<const std::uint8_t> bytes, std::string_view separator);

/// Parses hexadecimal digit pairs into `bytes`, with one separator character between all of them
/// (0: none); false when the text has any other form.
bool parseHexBytes(std::string_view text, char separator, std::span<std::uint8_t> bytes);

/// Four lower-case hexadecimal digits: `0x8001`.
std::string hexadecimal(std::uint16_t number);

std::string_view trim(std::string_view text);
std::vector<std::string> splitLines(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// `0, 2`
std::string joinNumbers(const std::set<int>& numbers);
/// The first `most` of them in one line, then how many there are besides: `a, b, and 12 more`. For
/// messages that name PFs, VFs or VMs: a host may have hundreds.
std::string joinFirst(const std::vector<std::string>& parts, std::size_t most = 5);
/// `1 problem`, `2 problems`.
std::string counted(std::size_t count, const std::string& thing);
std::string toLower(std::string_view text);

/// The candidate most similar to `word`; nullopt if all differ from it in more than a third of its
/// letters, or in more than `mostEdits`. Upper and lower case count as equal.
std::optional<std::string> closestSpelling(std::string_view word,
                                           const std::vector<std::string>& candidates,
                                           std::size_t mostEdits = 3);

/// Makes untrusted text safe for terminals and logs: control characters (including C1) and bytes
/// that are not valid UTF-8 become `\xNN`. Domain names may contain newlines and escape sequences.
std::string printable(std::string_view text);

/// Like printable(), for a complete message: newlines are kept. Names in the message must already
/// have been made printable, or they could forge lines; this catches escape sequences in names
/// where that was forgotten.
std::string printableLines(std::string_view text);

/// Like printableLines(), on one line for logs: newlines become spaces.
std::string printableLine(std::string_view text);

/// The present time, UTC, ISO 8601: `2026-01-31T12:00:00Z`.
std::string utcNow();

/// The system's message for an errno value, with the symbolic name: `Device or resource busy
/// (EBUSY)`.
std::string errnoText(int error);

/// Quotes any text as one word for a POSIX shell; unchanged where no quotes are needed.
std::string shellQuoted(const std::string& word);

/// Quotes an untrusted name (domain, path) as a word of a command in a remedy. Control characters
/// are escaped as by printable(), so that the command is safe to print; with such a name it refers
/// to nothing rather than to a wrong object.
std::string shellArgument(const std::string& name);

}  // namespace vfpass
