#include "readers_copy.hpp"

#include <SQLiteCpp/Backup.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "failure.hpp"
#include "sqlite_connection.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::state {
namespace {

void copyPages(SQLite::Database& database, const std::filesystem::path& target) {
  SQLite::Database copy(target.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOFOLLOW);
  // Not synced: it is not the state, and the next process that opens the database replaces it.
  copy.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  if (SQLite::Backup(copy, database).executeStep() != SQLITE_DONE) {
    throw SQLite::Exception(database.getHandle());
  }
}

// A directory without setgid gives new files the group of the process.
void giveToGroup(const std::filesystem::path& file, gid_t group) {
  struct stat status = {};
  if (::lstat(file.c_str(), &status) != 0 ||
      (status.st_gid != group && ::lchown(file.c_str(), static_cast<uid_t>(-1), group) != 0) ||
      ::chmod(file.c_str(), S_IRUSR | S_IWUSR | S_IRGRP) != 0) {
    throw systemFailure("cannot give " + printable(file.string()) + " to its readers", errno,
                        file.parent_path());
  }
}

void replace(SQLite::Database& database, const Location& location, gid_t group,
             std::chrono::milliseconds timeout) {
  // Without it, the copy of an earlier state could replace that of a later one.
  const FileLock lock = lockDatabase(location, timeout);
  // Private until it is complete, because SQLite locks what it writes.
  const std::filesystem::path draft = readersCopyOf(location).string() + ".new";
  std::filesystem::remove(draft);
  makePrivateFile(draft);
  copyPages(database, draft);
  giveToGroup(draft, group);
  std::filesystem::rename(draft, readersCopyOf(location));
}

}  // namespace

void replaceReadersCopy(SQLite::Database& database, const Location& location,
                        std::chrono::milliseconds timeout) noexcept {
  struct stat folder = {};
  if (::stat(location.folder.c_str(), &folder) != 0 || (folder.st_mode & S_IXGRP) == 0) {
    return;
  }
  try {
    replace(database, location, folder.st_gid, timeout);
  } catch (const std::exception&) {
    ::unlink(readersCopyOf(location).c_str());
  }
}

}  // namespace vfpass::state
