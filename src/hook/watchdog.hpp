#pragma once

#include <chrono>
#include <string>

namespace vfpass::hook {

/// Terminates the process after this time with one line on stderr, this entry in the journal
/// (events/journal_entry.hpp) and this exit code:
/// libvirt has no timeout for hooks and holds the domain's lock while one runs.
void startWatchdog(std::chrono::seconds timeout, int exitCode, const std::string& entry);

}  // namespace vfpass::hook
