#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/error.hpp"

namespace vfpass::commands {

/// The command that the words on the command line select: `host apply`, or `app` itself.
const CLI::App& selectedCommand(const CLI::App& app);

/// The words that select the command: `vfpass host apply`.
std::string commandPath(const CLI::App& command);

/// What is wrong with a command line, `words`, that CLI11 could not parse, in the form of every
/// other error: the command and the word, and as remedy a similar name or the command's help. The
/// texts of CLI11 name neither, and differ between its releases.
Error usageError(CLI::App& app, const std::vector<std::string_view>& words,
                 const CLI::ParseError& error);

/// The same for a value that is empty, as that of a variable that a script has not set: without
/// this error, `check ""` would check all VMs, and `doctor --device ""` no device. nullopt: none
/// is.
std::optional<Error> emptyValue(const CLI::App& app);

/// The same for the words after `help` that name no command.
Error unknownCommand(const CLI::App& above, const std::string& word);

/// The one that was probably meant. A guess that is far from a short word is worse than none: `foo`
/// is not `topo`.
std::optional<std::string> similarWord(const std::string& word,
                                       const std::vector<std::string>& words);

/// The type of an option's value as a user reads it: `NUMBER (0-256)`, `matrix|tree`. CLI11 appends
/// the accepted values in its own notation: `NUMBER:UINT in [0 - 256]`, `FORMAT:{matrix,tree}`.
std::string readableType(const std::string& type);

}  // namespace vfpass::commands
