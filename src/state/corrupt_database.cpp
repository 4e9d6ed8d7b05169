#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "failure.hpp"
#include "journal_table.hpp"
#include "lease_table.hpp"
#include "location.hpp"
#include "soft_roce_table.hpp"
#include "sqlite_connection.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

/// Ignores a missing file. Never replaces an existing one: files set aside earlier stay.
void moveAside(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0 &&
      errno != ENOENT) {
    throw systemFailure("cannot move " + printable(from.string()) + " to " + printable(to.string()),
                        errno, from.parent_path());
  }
}

bool isTaken(const std::filesystem::path& file) {
  std::error_code ignored;  // the rename reports a name that cannot be checked
  return std::filesystem::exists(std::filesystem::symlink_status(file, ignored));
}

Location freeName(const Location& location) {
  for (int number = 1;; ++number) {
    Location candidate{location.folder,
                       location.file.string() + ".corrupt-" + std::to_string(number)};
    if (!isTaken(candidate.file) && !isTaken(walOf(candidate))) {
      return candidate;
    }
  }
}

/// Reads everything; another process may have rebuilt the database since the caller found it
/// damaged.
bool isDamaged(const Location& location) {
  try {
    withReadOnlyDatabase(location, deadlines::rebuildDatabase, [](SQLite::Database& database) {
      if (database.execAndGet("PRAGMA quick_check(1)").getString() != "ok") {
        throw CorruptDatabase("quick_check failed");
      }
      readLeases(database);
      readOperations(database);
      readSoftRoceRecords(database);
      readGeneration(database);
    });
    return false;
  } catch (const CorruptDatabase&) {
    return true;
  }
}

}  // namespace

std::filesystem::path setAsideCorruptDatabase(const std::filesystem::path& stateDirectory) {
  const Location location = databaseIn(stateDirectory);
  if (!isTaken(location.file)) {
    throw Error("cannot set aside " + printable(location.file.string()) + ": no such file");
  }
  const FileLock lock = lockDatabase(location, deadlines::rebuildDatabase);
  if (!isDamaged(location)) {
    throw Error("cannot set aside " + printable(location.file.string()) + ": not damaged", {},
                ExitCode::refused);
  }
  const Location aside = freeName(location);
  // The WAL first: if this process is killed in between, a new database must not find the old WAL.
  moveAside(walOf(location), walOf(aside));
  moveAside(shmOf(location), shmOf(aside));
  moveAside(location.file, aside.file);
  syncFolder(stateDirectory);
  return aside.file;
}

}  // namespace vfpass::state
