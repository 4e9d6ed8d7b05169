#include "connection.hpp"

#include <SQLiteCpp/Transaction.h>
#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>
#include <system_error>

#include "failure.hpp"
#include "folder.hpp"
#include "schema.hpp"
#include "timed_flock.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::state {
namespace {

void initialize(SQLite::Database& database, const Location& location,
                std::chrono::milliseconds patience) {
  // Two processes that turn the same new file to WAL get SQLITE_BUSY at once, without the busy
  // time-out (waiting could be a deadlock), so only one of them may try.
  const FileDescriptor lock = lockFolder(location, patience);
  const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
  if (mode != "wal") {
    throw Error("the file system of " + printable(location.folder.string()) +
                    " cannot hold a state database: no shared memory for SQLite's WAL",
                "name a folder on a local file system with --state-dir");
  }
  migrate(database, location);
}

void prepare(SQLite::Database& database, const Location& location,
             std::chrono::milliseconds patience) {
  // SQLite falls back to reading when it may not write, and says so only at the first write.
  if (sqlite3_db_readonly(database.getHandle(), "main") != 0) {
    throwSqliteFailure({SQLITE_READONLY, 0, "it is read-only"}, location, patience);
  }
  database.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  if (readSchemaVersion(database, location) < schemaVersion) {
    initialize(database, location, patience);
  }
}

}  // namespace

void requireTrustedDatabase(const Location& location) {
  for (const auto& file : {location.file, walOf(location), shmOf(location)}) {
    requireTrustedFile(file);
  }
}

FileDescriptor lockFolder(const Location& location, std::chrono::milliseconds patience) {
  FileDescriptor folder(::open(location.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    throw systemFailure("cannot open the folder " + printable(location.folder.string()), errno,
                        location.folder);
  }
  try {
    if (flockUntil(folder.get(), std::chrono::steady_clock::now() + patience)) {
      return folder;
    }
  } catch (const std::system_error& error) {
    throw systemFailure("cannot lock the folder " + printable(location.folder.string()),
                        error.code().value(), location.folder);
  }
  throwSqliteFailure({SQLITE_BUSY, 0, {}}, location, patience);
}

std::unique_ptr<SQLite::Database> openForWriting(const Location& location,
                                                 std::chrono::milliseconds busyTimeout) {
  requireTrustedDatabase(location);
  makePrivateFile(location.file);
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
