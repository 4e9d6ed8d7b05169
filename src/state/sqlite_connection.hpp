#pragma once

#include <SQLiteCpp/Database.h>

#include <chrono>
#include <functional>
#include <memory>

#include "location.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::state {

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
/// write lock at once, because a transaction that upgrades later can fail without waiting.
void inTransaction(SQLite::Database& database, const Location& location,
                   std::chrono::milliseconds busyTimeout, bool forWriting, const Work& work);

/// Runs `work` on the current database, or on its copy for readers if this process must not read
/// the database itself, without creating or changing anything in its directory. Does not call it if
/// there is no database or an empty one. May call it again if the file changed
/// meanwhile.
void withReadOnlyDatabase(const Location& location, std::chrono::milliseconds busyTimeout,
                          const Work& work);

}  // namespace vfpass::state
