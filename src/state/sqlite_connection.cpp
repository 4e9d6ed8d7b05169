#include "sqlite_connection.hpp"

#include <SQLiteCpp/Transaction.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "state_folder.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

/// The errno that prevents a file of the size of a WAL in this directory; 0 if none does.
int probeRoom(const std::filesystem::path& folder) {
  constexpr off_t usualWalSize = off_t{1} << 20U;
  const FileDescriptor nameless(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!nameless) {
    return errno == EOPNOTSUPP || errno == EISDIR ? 0
                                                  : errno;  // O_TMPFILE is not supported everywhere
  }
  return ::posix_fallocate(nameless.get(), 0, usualWalSize);
}

/// SQLite drops the errno of a failed commit, and of an open that it retries read-only. Ask the
/// system again.
int probe(const Location& location) {
  if (::eaccess(location.file.c_str(), R_OK | W_OK) != 0 && errno != ENOENT) {
    return errno;
  }
  return probeRoom(location.folder);
}

std::string subject(const Location& location) {
  return "state database " + printable(location.file.string());
}

std::string waitForHolder(const Location& location) {
  return "wait for the other vfpass command to finish, then try again; `fuser -v " +
         shellArgument(location.file.string()) + " " + shellArgument(shmOf(location).string()) +
         "` shows the holder";
}

[[noreturn]] void throwBusy(const Location& location, std::chrono::milliseconds waited) {
  throw Error(subject(location) + " is locked by another process; waited " +
                  std::to_string(waited.count()) + " ms",
              waitForHolder(location));
}

[[noreturn]] void throwInaccessible(const SqliteFailure& failure, const Location& location) {
  const int error = hasKnownRemedy(failure.systemError) ? failure.systemError : probe(location);
  if (hasKnownRemedy(error)) {
    throw systemFailure("cannot use " + subject(location), error, location.folder);
  }
  throw Error("cannot use " + subject(location) + ": " + printable(failure.message) +
                  " (SQLite code " + std::to_string(failure.code) + ")",
              systemFailure({}, failure.systemError, location.folder).remedy());
}

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

/// In WAL mode, SQLite goes on writing into a file that setAsideCorruptDatabase() has moved.
void requireInPlace(SQLite::Database& database, const Location& location) {
  int moved = 0;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0) {
    throw Error(subject(location) +
                    " has been moved or replaced since this process opened it, so the change is "
                    "not recorded",
                "run `vfpass recover`");
  }
}

}  // namespace

void throwSqliteFailure(const SqliteFailure& failure, const Location& location,
                        std::chrono::milliseconds waited) {
  switch (failure.code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throwBusy(location, waited);
    case SQLITE_PROTOCOL:  // walIndexRecover() elsewhere held its locks through all 100 retries
      throw Error(
          subject(location) +
              " is locked by another process, which does not finish reading its log after a "
              "crash",
          waitForHolder(location));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // the statements are fixed: the file lacks a table or a column
      // SQLite's message can quote names from the damaged file.
      throw CorruptDatabase(subject(location) + " is damaged: " + printable(failure.message));
    case SQLITE_FULL:
      throw systemFailure("cannot write " + subject(location), ENOSPC, location.folder);
    default:
      throwInaccessible(failure, location);
  }
}

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
  finishReplacement(location, busyTimeout);
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
    if (forWriting) {
      requireInPlace(database, location);
    }
    work(database);
    if (forWriting) {
      requireInPlace(database, location);
    }
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    throwSqliteFailure(
        {error.getExtendedErrorCode(), sqlite3_system_errno(database.getHandle()), error.what()},
        location, busyTimeout);
  }
}

}  // namespace vfpass::state
