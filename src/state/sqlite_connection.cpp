#include "sqlite_connection.hpp"

#include <SQLiteCpp/Transaction.h>
#include <sqlite3.h>

#include <array>

#include "failure.hpp"
#include "schema.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::state {
namespace {

std::array<std::filesystem::path, 3> filesOf(const Location& location) {
  return {location.file, walOf(location), shmOf(location)};
}

void initialize(SQLite::Database& database, const Location& location,
                std::chrono::milliseconds timeout) {
  // If two processes switch the same new file to WAL, one gets SQLITE_BUSY at once, without the
  // busy timeout (waiting could deadlock). So only one of them may try.
  const FileLock lock = lockDatabase(location, timeout);
  const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
  if (mode != "wal") {
    throw Error("cannot keep the state database in " + printable(location.folder.string()) +
                    ": the file system has no shared memory for SQLite's WAL",
                "specify a directory on a local file system with --state-dir");
  }
  migrate(database, location);
}

void prepare(SQLite::Database& database, const Location& location,
             std::chrono::milliseconds timeout) {
  // SQLite silently opens the file read-only if it cannot write, and fails only at the first write.
  if (sqlite3_db_readonly(database.getHandle(), "main") != 0) {
    throwSqliteFailure({SQLITE_READONLY, 0, "the database is read-only"}, location, timeout);
  }
  database.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  if (readSchemaVersion(database, location) < schemaVersion) {
    initialize(database, location, timeout);
  }
}

}  // namespace

void requireTrustedDatabase(const Location& location) {
  for (const auto& file : filesOf(location)) {
    requireTrustedFile(file);
  }
}

FileLock lockDatabase(const Location& location, std::chrono::milliseconds timeout) {
  return FileLock::acquire(location.folder / "vfpass.lock", timeout);
}

std::unique_ptr<SQLite::Database> openForWriting(const Location& location,
                                                 std::chrono::milliseconds busyTimeout) {
  requireTrustedDatabase(location);
  makePrivateFile(location.file);
  for (const auto& file : filesOf(location)) {
    makeExistingFilePrivate(file);  // earlier versions let the group read them
  }
  std::unique_ptr<SQLite::Database> database;
  try {
    database = std::make_unique<SQLite::Database>(location.file.string(),
                                                  SQLite::OPEN_READWRITE | SQLite::OPEN_NOFOLLOW,
                                                  static_cast<int>(busyTimeout.count()));
    prepare(*database, location, busyTimeout);
  } catch (const SQLite::Exception& error) {
    const int systemError = database ? sqlite3_system_errno(database->getHandle()) : 0;
    throwSqliteFailure({error.getExtendedErrorCode(), systemError, error.what()}, location,
                       busyTimeout);
  }
  return database;
}

void inTransaction(SQLite::Database& database, const Location& location,
                   std::chrono::milliseconds busyTimeout, bool forWriting, const Work& work) {
  try {
    SQLite::Transaction transaction(database, forWriting ? SQLite::TransactionBehavior::IMMEDIATE
                                                         : SQLite::TransactionBehavior::DEFERRED);
    work(database);
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    throwSqliteFailure(
        {error.getExtendedErrorCode(), sqlite3_system_errno(database.getHandle()), error.what()},
        location, busyTimeout);
  }
}

}  // namespace vfpass::state
