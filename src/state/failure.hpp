#pragma once

#include <SQLiteCpp/Exception.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "location.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {

/// A system call in this folder failed with `error`: message with the system's words, and the
/// remedy that fits (no room, read-only, no permission).
Error systemFailure(const std::string& what, int error, const std::filesystem::path& folder);

std::string corruptDatabaseRemedy();

/// What SQLite reported, and what the system said to it (sqlite3_system_errno; 0: unknown).
struct SqliteFailure {
  int code = 0;  ///< extended result code
  int systemError = 0;
  std::string message;
};

/// Throws the Error (CorruptDatabase for a damaged file) that tells an administrator what to do.
[[noreturn]] void throwSqliteFailure(const SqliteFailure& failure, const Location& location,
                                     std::chrono::milliseconds waited);

}  // namespace vfpass::state
