#pragma once

#include <SQLiteCpp/Database.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "state_folder.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::state {

/// A failure reported by SQLite, with its errno (sqlite3_system_errno; 0: unknown).
struct SqliteFailure {
  int code = 0;  ///< extended result code
  int systemError = 0;
  std::string message;
};

/// Throws the matching Error (CorruptDatabase for a damaged file), with a remedy.
[[noreturn]] void throwSqliteFailure(const SqliteFailure& failure, const Location& location,
                                     std::chrono::milliseconds waited);

/// Reads or changes the database within one transaction.
using Work = std::function<void(SQLite::Database&)>;

/// Throws Error (badInput) if another user could have written the database, its WAL or its index.
void requireTrustedDatabase(const Location& location);

/// Keeps other processes from creating, setting aside or copying the database for readers. A file
/// of its own: whoever may list the directory can lock that.
FileLock lockDatabase(const Location& location, std::chrono::milliseconds timeout);

/// Opens for writing; creates a missing file, takes the permissions of others from an existing one,
/// and migrates the schema. Throws Error.
std::unique_ptr<SQLite::Database> openForWriting(const Location& location,
                                                 std::chrono::milliseconds busyTimeout);

/// Runs `work` in one transaction and turns SQLite failures into Error. `forWriting` takes the
/// write lock at once, because a transaction that upgrades later can fail without waiting. It
/// throws Error if another process has set the database aside since it was opened.
void inTransaction(SQLite::Database& database, const Location& location,
                   std::chrono::milliseconds busyTimeout, bool forWriting, const Work& work);

/// Runs `work` on the current database, or on its copy for readers if this process must not read
/// the database itself, without creating or changing anything in its directory. Does not call it if
/// there is no database or an empty one. May call it again if the file changed meanwhile.
void withReadOnlyDatabase(const Location& location, std::chrono::milliseconds busyTimeout,
                          const Work& work);

/// Calls `use` with a private copy of the database and of its WAL, which it may change. Throws
/// Error if the files cannot be copied.
void withPrivateCopy(const Location& location, const std::function<void(const Location&)>& use);

/// If the replacement of a damaged database is complete (setAsideCorruptDatabase()), moves the
/// damaged one away and puts it in its place. The caller holds lockDatabase(). Returns the new path
/// of the damaged one; empty if there is no replacement.
std::filesystem::path putReplacementInPlace(const Location& location);

/// The same for an open that may follow a process that was killed meanwhile.
void finishReplacement(const Location& location, std::chrono::milliseconds timeout);

/// The schema version that this program writes (`PRAGMA user_version`).
inline constexpr int schemaVersion = 5;

/// Returns 0 for an empty database. Throws Error if a newer vfpass wrote it, and CorruptDatabase if
/// it has lost its number.
int readSchemaVersion(SQLite::Database& database, const Location& location);

/// Migrates the database to `schemaVersion` in one transaction; does nothing if it is current.
void migrate(SQLite::Database& database, const Location& location);

/// Replaces, in one step, the copy of the database that the group of its directory may read, if the
/// directory lets the group in. The group must not open the database itself: a member could keep a
/// read lock on it or on the index of the WAL (fcntl(2)) and so stop every writer.
///
/// The caller has committed, so this never throws: a copy that cannot be written is removed,
/// because readers must not take it for the current state.
void replaceReadersCopy(SQLite::Database& database, const Location& location,
                        std::chrono::milliseconds timeout) noexcept;

}  // namespace vfpass::state
