#include "failure.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

// EFBIG comes from the process's file size limit (ulimit -f), which stops a write like a full disk.
bool meansNoRoom(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }
bool meansNoPermission(int error) { return error == EACCES || error == EPERM; }

std::string remedyFor(int error, const std::filesystem::path& folder) {
  const std::string name = printable(folder.string());
  const std::string quoted = shellArgument(folder.string());
  if (meansNoRoom(error)) {
    return "make room in the file system of " + name + " (df -h " + quoted + "; df -i " + quoted +
           "), then run the command again; it first recovers interrupted operations";
  }
  if (error == EROFS) {
    return "make the file system of " + name +
           " writable (mount -o remount,rw), or specify another directory with --state-dir";
  }
  if (meansNoPermission(error)) {
    return "run as root, or specify a directory of your own with --state-dir";
  }
  return "check " + name + " and the kernel log (`dmesg`)";
}

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

bool isSpecific(int error) {
  return meansNoRoom(error) || meansNoPermission(error) || error == EROFS;
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
  const int error = isSpecific(failure.systemError) ? failure.systemError : probe(location);
  if (isSpecific(error)) {
    throw systemFailure("cannot use " + subject(location), error, location.folder);
  }
  throw Error("cannot use " + subject(location) + ": " + printable(failure.message) +
                  " (SQLite code " + std::to_string(failure.code) + ")",
              remedyFor(failure.systemError, location.folder));
}

}  // namespace

Error systemFailure(const std::string& what, int error, const std::filesystem::path& folder) {
  return Error(what + ": " + errnoText(error), remedyFor(error, folder));
}

void throwUnknownRecord(const std::string& what) {
  throw Error("state database: this vfpass does not understand a record: " + printable(what),
              "a newer vfpass wrote it; reinstall that version and run `vfpass recover` before you "
              "downgrade");
}

std::string corruptDatabaseRemedy() {
  return "run `vfpass recover`; it moves the file aside and rebuilds the leases from the host and "
         "the domains' XML";
}

void throwSqliteFailure(const SqliteFailure& failure, const Location& location,
                        std::chrono::milliseconds waited) {
  switch (failure.code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throwBusy(location, waited);
    case SQLITE_PROTOCOL:  // walIndexRecover() elsewhere held its locks through all 100 retries
      throw Error(subject(location) +
                      " is locked by another process, which does not finish reading "
                      "its log after a crash",
                  waitForHolder(location));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // the statements are fixed: the file lacks a table or a column
      // SQLite's message can quote names from the damaged file.
      throw CorruptDatabase(subject(location) + " is damaged: " + printable(failure.message),
                            corruptDatabaseRemedy());
    case SQLITE_FULL:
      throw systemFailure("cannot write " + subject(location), ENOSPC, location.folder);
    default:
      throwInaccessible(failure, location);
  }
}

}  // namespace vfpass::state
