#pragma once

#include <SQLiteCpp/Exception.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "location.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/model/record.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {

/// The error for a system call that failed with `error` in this directory: a message with the
/// system's reason and a matching remedy (no room, read-only, no permission).
Error systemFailure(const std::string& what, int error, const std::filesystem::path& folder);

std::string corruptDatabaseRemedy();

/// Throws the error for a record that this version does not understand.
[[noreturn]] void throwUnknownRecord(const std::string& what);

/// Reads records with `read()`. Throws CorruptDatabase for a damaged one, and otherwise Error for
/// one that it refuses.
template <typename Read>
auto readRecords(Read read) {
  try {
    return read();
  } catch (const model::RecordRefused& refused) {
    if (refused.isDamaged) {
      throw CorruptDatabase("state database: damaged record: " + printable(refused.what()),
                            corruptDatabaseRemedy());
    }
    throwUnknownRecord(refused.what());
  }
}

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
