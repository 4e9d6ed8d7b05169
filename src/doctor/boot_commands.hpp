#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "competing_managers.hpp"

namespace vfpass::doctor {

// How files that run at boot are read: their lines, and the commands and words in them.

/// What stands between the words of the shell, and between its commands.
inline constexpr std::string_view shellBlanks = " \t\v\"'";
inline constexpr std::string_view shellSeparators = ";|&(){}`\v";

/// A line with the lines that continue it. A vertical tab marks each place where they were joined.
struct LogicalLine {
  std::size_t first = 0;
  std::string text;

  [[nodiscard]] std::size_t lineOf(std::size_t at) const {
    return first + static_cast<std::size_t>(std::count(
                       text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\v'));
  }
};

/// The lines of a file, without empty ones and comments.
std::vector<LogicalLine> logicalLines(std::string_view text);

/// Places of a name that is not part of a longer one.
std::vector<std::size_t> placesOf(std::string_view text, std::string_view name);

/// The program of the command that ends here: its first word after the last separator.
std::string programBefore(std::string_view text);

/// One `KEY{attribute}OPERATOR"value"` of a udev rule.
struct UdevToken {
  std::string key;       ///< with its attribute
  bool assigns = false;  ///< `=`, `+=`, `-=` or `:=`, not a comparison
  std::string value;
  std::size_t keyAt = 0;  ///< place in the rule
  std::size_t valueAt = 0;
};

/// The tokens of one rule, without its line breaks (udev(7)).
std::vector<UdevToken> udevTokens(std::string_view rule);

/// The part of a line that a shell, or systemd in its place, runs.
using Commands = std::function<void(const LogicalLine&, std::string_view, std::size_t)>;

/// Calls `use` for each command in a file of this language, with its line and its place there.
void eachCommand(BootLanguage language, std::string_view text, const Commands& use);

}  // namespace vfpass::doctor
