#pragma once

#include <string_view>

namespace vfpass::events {

/// Where systemd-journald listens (systemd's JOURNAL_NATIVE_PROTOCOL).
inline constexpr const char* journalSocket = "/run/systemd/journal/socket";

/// Sends an entry (journal_entry.hpp) without waiting: no operation may depend on a journal that is
/// missing, full or stopped. False if the entry was not accepted. Async-signal-safe.
bool sendEntry(std::string_view datagram, const char* socket = journalSocket) noexcept;

/// True if stderr is a stream of the journal, as for a systemd service: `variable` is the value of
/// JOURNAL_STREAM, the device and inode of that stream (systemd.exec(5)), or null.
bool isJournalStream(int descriptor, const char* variable) noexcept;

}  // namespace vfpass::events
