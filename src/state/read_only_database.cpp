#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Transaction.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "sqlite_connection.hpp"
#include "state_folder.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

/// The part of stat(2) that shows whether a file was replaced or written.
struct FileSignature {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  time_t seconds = 0;
  long nanoseconds = 0;

  bool operator==(const FileSignature&) const = default;
};

struct Signature {
  std::optional<FileSignature> database;
  std::optional<FileSignature> wal;
  bool hasSharedMemory = false;

  bool operator==(const Signature&) const = default;
};

std::optional<FileSignature> signatureOf(const std::filesystem::path& file,
                                         const Location& location) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return std::nullopt;
    }
    throw systemFailure("cannot stat " + printable(file.string()), errno, location.folder);
  }
  return FileSignature{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                       status.st_mtim.tv_nsec};
}

Signature signatureOf(const Location& location) {
  return {signatureOf(location.file, location), signatureOf(walOf(location), location),
          signatureOf(shmOf(location), location).has_value()};
}

/// A WAL that is only its header (32 bytes) holds nothing, but a reader without write access waits
/// in vain for a salt that matches it: "locking protocol" (walBeginShmUnreliable in SQLite's
/// wal.c). A writer that was killed in its first commit leaves such a file.
constexpr off_t walHeaderSize = 32;

bool hasPendingWal(const Signature& signature) {
  return signature.wal.has_value() && signature.wal->size > walHeaderSize;
}

/// Only then do the locks of SQLite keep writers from changing what we read.
bool isShared(const Signature& signature) {
  return hasPendingWal(signature) && signature.hasSharedMemory;
}

std::string asUri(const std::filesystem::path& file, const std::string& options) {
  std::string uri = "file:";
  for (const char character : file.string()) {
    const bool special = character == '%' || character == '?' || character == '#';
    uri += special ? "%" + hexBytes(std::vector{static_cast<std::uint8_t>(character)}, "")
                   : std::string(1, character);
  }
  return uri + "?" + options;
}

void queryUri(const std::string& uri, const Location& location,
              std::chrono::milliseconds busyTimeout, const Work& work) {
  SQLite::Database database(uri, SQLite::OPEN_READONLY | SQLite::OPEN_URI,
                            static_cast<int>(busyTimeout.count()));
  SQLite::Transaction transaction(database);
  if (readSchemaVersion(database, location) > 0) {
    work(database);
  }
}

void copyFiles(const Location& location, const std::function<void(const Location&)>& use) {
  std::string pattern = (std::filesystem::temp_directory_path() / "vfpass-read-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw systemFailure("cannot create temporary directory " + pattern, errno,
                        std::filesystem::temp_directory_path());
  }
  const ScopeGuard cleanUp([&pattern] {
    std::error_code ignored;
    std::filesystem::remove_all(pattern, ignored);
  });
  const Location copy = databaseIn(pattern);
  std::filesystem::copy_file(location.file, copy.file);
  if (std::filesystem::exists(walOf(location))) {
    std::filesystem::copy_file(walOf(location), walOf(copy));
  }
  use(copy);
}

/// A WAL without its index (the state directory was copied, or a power loss removed it): SQLite
/// would create the index next to the file, so it works on a private copy instead.
void queryCopy(const Location& location, std::chrono::milliseconds busyTimeout, const Work& work) {
  copyFiles(location, [&](const Location& copy) {
    queryUri(asUri(copy.file, "mode=ro"), copy, busyTimeout, work);
  });
}

void query(const Signature& signature, const Location& location,
           std::chrono::milliseconds busyTimeout, const Work& work) {
  if (isShared(signature)) {
    queryUri(asUri(location.file, "readonly_shm=1"), location, busyTimeout, work);
  } else if (hasPendingWal(signature)) {
    queryCopy(location, busyTimeout, work);
  } else {
    // All data is in the file itself. `immutable`, because SQLite would otherwise create WAL and
    // index.
    queryUri(asUri(location.file, "immutable=1"), location, busyTimeout, work);
  }
}

bool mustReadCopy(const Location& location) {
  return ::eaccess(location.file.c_str(), R_OK) != 0 && errno == EACCES;
}

/// Nobody writes the file itself, and a new one replaces it in one step.
void queryReadersCopy(const Location& location, std::chrono::milliseconds busyTimeout,
                      const Work& work) {
  const Location copy{location.folder, readersCopyOf(location)};
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(copy.file, ignored))) {
    throw Error(
        "cannot read state database " + printable(location.file.string()) +
            ": Permission denied; and there is no copy for its group, " +
            printable(copy.file.string()),
        "run as root; a command of root that changes the state also writes the copy, if the file "
        "system has room");
  }
  requireTrustedFile(copy.file);
  if (std::filesystem::file_size(copy.file, ignored) == 0) {  // after a power loss
    throwSqliteFailure({SQLITE_CORRUPT, 0, "the file is empty"}, copy, busyTimeout);
  }
  try {
    queryUri(asUri(copy.file, "immutable=1"), copy, busyTimeout, work);
  } catch (const SQLite::Exception& error) {
    throwSqliteFailure({error.getExtendedErrorCode(), 0, error.what()}, copy, busyTimeout);
  }
}

/// One attempt to read a database that others may write meanwhile.
class Attempt {
 public:
  explicit Attempt(const Location& location)
      : location_(location), start_(coarseTime()), before_(signatureOf(location)) {}

  [[nodiscard]] const Signature& before() const { return before_; }

  /// Without the locks of SQLite, only the files show whether somebody wrote. Their times change
  /// with the kernel tick (1 to 10 ms), so a file written in the current tick can change and look
  /// the same.
  [[nodiscard]] bool mayHaveChanged() const {
    return !(signatureOf(location_) == before_) || isFromThisTick(before_.database) ||
           isFromThisTick(before_.wal);
  }

 private:
  using Time = std::pair<time_t, long>;

  /// The clock of file times.
  static Time coarseTime() {
    timespec now = {};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return {now.tv_sec, now.tv_nsec};
  }

  [[nodiscard]] bool isFromThisTick(const std::optional<FileSignature>& file) const {
    if (!file) {
      return false;
    }
    const Time written{file->seconds, file->nanoseconds};
    return written >= start_ && written <= coarseTime();
  }

  const Location& location_;
  Time start_;
  Signature before_;
};

/// A writer has just opened the database but not yet created the index of the WAL, which a reader
/// may not create.
bool isBeingOpened(const SQLite::Exception& error) {
  const int code = error.getExtendedErrorCode();
  return code == SQLITE_READONLY_RECOVERY || code == SQLITE_READONLY_CANTLOCK ||
         code == SQLITE_READONLY_CANTINIT;
}

/// True: `work` has seen one consistent state of the database. False: read again.
bool tryQuery(const Location& location, std::chrono::milliseconds busyTimeout, bool isLast,
              const Work& work) {
  const Attempt attempt(location);
  const Signature& before = attempt.before();
  if (!before.database || before.database->size == 0) {
    return true;
  }
  try {
    query(before, location, busyTimeout, work);
    return isShared(before) || !attempt.mayHaveChanged();
  } catch (const SQLite::Exception& error) {
    // A writer that closes at this moment looks like damage.
    if (!isBeingOpened(error) && (isLast || !attempt.mayHaveChanged())) {
      throwSqliteFailure({error.getExtendedErrorCode(), 0, error.what()}, location, busyTimeout);
    }
  } catch (const CorruptDatabase&) {
    // So does a row that was read while its page was written.
    if (isLast || isShared(before) || !attempt.mayHaveChanged()) {
      throw;
    }
  } catch (const std::filesystem::filesystem_error& error) {
    if (isLast || !attempt.mayHaveChanged()) {
      throw systemFailure("cannot read state database " + printable(location.file.string()),
                          error.code().value(), location.folder);
    }
  }
  return false;
}

}  // namespace

void withReadOnlyDatabase(const Location& location, std::chrono::milliseconds busyTimeout,
                          const Work& work) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(location.folder, ignored))) {
    // A trailing slash would make lstat(2) follow a link.
    requireTrustedFolder(location.folder.has_filename() ? location.folder
                                                        : location.folder.parent_path());
    requireTrustedDatabase(location);
  }
  if (mustReadCopy(location)) {
    return queryReadersCopy(location, busyTimeout, work);
  }
  const auto deadline = std::chrono::steady_clock::now() + busyTimeout;
  for (bool isLast = false; !isLast;) {
    isLast = std::chrono::steady_clock::now() >= deadline;
    if (tryQuery(location, busyTimeout, isLast, work)) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throwSqliteFailure({SQLITE_BUSY, 0, {}}, location, busyTimeout);
}

void withPrivateCopy(const Location& location, const std::function<void(const Location&)>& use) {
  try {
    copyFiles(location, use);
  } catch (const std::filesystem::filesystem_error& error) {
    throw systemFailure("cannot copy state database " + printable(location.file.string()),
                        error.code().value(), location.folder);
  }
}

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
