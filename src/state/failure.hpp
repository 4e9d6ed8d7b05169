#pragma once

#include <SQLiteCpp/Exception.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "location.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {

/// The error for a system call that failed with `error` in this directory: a message with the
/// system's reason and a matching remedy (no room, read-only, no permission).
Error systemFailure(const std::string& what, int error, const std::filesystem::path& folder);

std::string corruptDatabaseRemedy();

/// A failure reported by SQLite, with its errno (sqlite3_system_errno; 0: unknown).
struct SqliteFailure {
  int code = 0;  ///< extended result code
  int systemError = 0;
  std::string message;
};

/// Throws the matching Error (CorruptDatabase for a damaged file), with a remedy.
[[noreturn]] void throwSqliteFailure(const SqliteFailure& failure, const Location& location,
                                     std::chrono::milliseconds waited);

}  // namespace vfpass::state
