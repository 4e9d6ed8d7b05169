#pragma once

#include <string>

#include "commands.hpp"

namespace vfpass::commands {

/// Adds `--watch[=SECONDS]`, whose text goes into `watch`; empty: not given.
void addWatch(CLI::App& command, std::string& watch);

/// `show` once; with --watch again and again, each time with a new session: on a terminal the text
/// is replaced, elsewhere every text that differs from the one before is printed below its time,
/// with
/// --json without it. Returns only if nobody reads the output any more; a signal ends the process.
/// A failure of the first time is thrown, a later one shown. Throws Error for a bad number of
/// seconds.
ExitCode showOrWatch(Session& session, const std::string& watch, const Runner& show);

/// As many of the lines as fit on a terminal of `rows`, with a last one for the others.
std::string clipped(const std::string& text, std::size_t rows);

}  // namespace vfpass::commands
