#pragma once

#include <SQLiteCpp/Database.h>

#include <chrono>
#include <functional>
#include <memory>

#include "location.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::state {

using Work = std::function<void(SQLite::Database&)>;

/// Throws Error (badInput) when somebody else could have written the database, its WAL or its
/// index.
void requireTrustedDatabase(const Location& location);

/// Keeps others from making or setting aside the database while the descriptor lives.
FileDescriptor lockFolder(const Location& location, std::chrono::milliseconds patience);

/// Opens for writing; makes folder and file, and brings the schema up to date. Throws Error.
std::unique_ptr<SQLite::Database> openForWriting(const Location& location,
                                                 std::chrono::milliseconds busyTimeout);

/// Runs `work` in one transaction and turns SQLite's failures into Error. `forWriting` takes the
/// write lock at once, because a transaction that upgrades later can fail without waiting.
void inTransaction(SQLite::Database& database, const Location& location,
                   std::chrono::milliseconds busyTimeout, bool forWriting, const Work& work);

/// Runs `work` on the database as it is now without making or changing anything in its folder. Not
/// called when there is no database, or an empty one. May call it again when the file changed
/// under its hands.
void withReadOnlyDatabase(const Location& location, std::chrono::milliseconds busyTimeout,
                          const Work& work);

}  // namespace vfpass::state
