#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <SQLiteCpp/VariadicBind.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "database_tables.hpp"
#include "sqlite_connection.hpp"
#include "state_folder.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

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

/// Names the file also `to`. Its own name is then replaced in one step: without a file, readers and
/// the hook of a stop would see no leases. Ignores a missing file.
void nameAside(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::link(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
    throw systemFailure("cannot link " + printable(from.string()) + " to " + printable(to.string()),
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

/// Another process may have rebuilt the database since the caller found it damaged.
bool isDamaged(const Location& location) {
  try {
    withReadOnlyDatabase(location, deadlines::rebuildDatabase, state::requireUndamaged);
    return false;
  } catch (const CorruptDatabase&) {
    return true;
  }
}

struct EndedRow {
  std::string domain;
  std::string entry;
  std::int64_t generation = 0;
  std::string record;  ///< empty: it has none, or it is damaged
  std::string seal;
};

/// What can still be read of a damaged database, and of what no domain's XML tells.
struct Salvage {
  std::vector<QuarantinedDevice> quarantine;
  bool wholeQuarantine = false;
  std::vector<EndedRow> ended;
  std::int64_t generation = 0;
  std::int64_t operation = 0;  ///< the highest number of an operation: they are never reused
};

bool isDamage(const SQLite::Exception& error) {
  const int code = error.getExtendedErrorCode() & 0xff;
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
         code == SQLITE_CONSTRAINT;
}

/// Calls `take` with each row that can be read, until one cannot. False if there is such a row, or
/// if `take` returned false. NOT INDEXED, because an index can be damaged alone.
template <typename Take>
bool readRows(SQLite::Database& database, const std::string& query, Take take) {
  bool isWhole = true;
  try {
    SQLite::Statement rows(database, query);
    while (rows.executeStep()) {
      isWhole = take(rows) && isWhole;
    }
    return isWhole;
  } catch (const SQLite::Exception& error) {
    if (!isDamage(error)) {
      throw;
    }
    return false;
  }
}

bool takeQuarantined(SQLite::Statement& row, Salvage& salvage) {
  const auto device = parsePciAddress(row.getColumn(0).getString());
  if (device) {
    salvage.quarantine.push_back({*device, row.getColumn(1).getString(),
                                  row.getColumn(2).getString(), row.getColumn(3).getString()});
  }
  return device.has_value();
}

/// A record of a newer version is not damaged.
bool isReadable(const std::string& record) {
  try {
    handOverFromJson(record);
  } catch (const CorruptDatabase&) {
    return false;
  } catch (const Error&) {
    return true;
  }
  return true;
}

bool takeEnded(SQLite::Statement& row, Salvage& salvage) {
  EndedRow ended{row.getColumn(0).getString(), row.getColumn(1).getString(),
                 row.getColumn(2).getInt64(), row.getColumn(3).getString(),
                 row.getColumn(4).getString()};
  if (!parseUuid(ended.domain) || ended.generation < 0) {
    return false;
  }
  if (!isReadable(ended.record)) {
    ended.record.clear();
    ended.seal.clear();
  }
  salvage.generation = std::max(salvage.generation, ended.generation);
  salvage.ended.push_back(std::move(ended));
  return true;
}

bool takeGenerationNumber(SQLite::Statement& row, Salvage& salvage) {
  salvage.generation = std::max(salvage.generation, row.getColumn(0).getInt64());
  return true;
}

bool takeOperationNumber(SQLite::Statement& row, Salvage& salvage) {
  // A damaged one could leave no number for the next operation.
  constexpr std::int64_t highest = std::int64_t{1} << 48U;
  const std::int64_t number = row.getColumn(0).getInt64();
  if (number > highest) {
    return false;
  }
  salvage.operation = std::max(salvage.operation, number);
  return true;
}

/// False also if the number of the format is damaged.
bool isBefore(SQLite::Database& database, int format) {
  return hasFormat(database, 1) && !hasFormat(database, format);
}

void readAll(SQLite::Database& database, Salvage& salvage) {
  const auto into = [&salvage](auto take) {
    return [&salvage, take](SQLite::Statement& row) { return take(row, salvage); };
  };
  const std::string identity = isBefore(database, 5) ? "''" : "identity";
  salvage.wholeQuarantine =
      readRows(database,
               "SELECT device, reason, since, " + identity + " FROM quarantine NOT INDEXED",
               into(takeQuarantined)) ||
      isBefore(database, 4);
  const std::string record = isBefore(database, 4) ? "'', ''" : "record, seal";
  readRows(database,
           "SELECT domain, vf_name, generation, " + record + " FROM ended_leases NOT INDEXED",
           into(takeEnded));
  readRows(database, "SELECT last FROM generation", into(takeGenerationNumber));
  readRows(database, "SELECT seq FROM sqlite_sequence WHERE name = 'operations'",
           into(takeOperationNumber));
  readRows(database, "SELECT id FROM operations NOT INDEXED", into(takeOperationNumber));
}

/// Throws Error if the copy cannot be read at all for another reason than its damage.
Salvage salvageOf(const Location& copy) {
  Salvage salvage;
  try {
    SQLite::Database database(copy.file.string(), SQLite::OPEN_READWRITE);
    readAll(database, salvage);
  } catch (const SQLite::Exception& error) {
    if (!isDamage(error)) {
      throwSqliteFailure({error.getExtendedErrorCode(), 0, error.what()}, copy,
                         deadlines::rebuildDatabase);
    }
  }
  return salvage;
}

void writeEnded(SQLite::Database& database, const EndedRow& row) {
  SQLite::Statement insert(database,
                           "INSERT INTO ended_leases (domain, vf_name, generation, record, seal) "
                           "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  SQLite::bind(insert, row.domain, row.entry, row.generation, row.record, row.seal);
  insert.exec();
}

/// What AUTOINCREMENT of SQLite counts on from.
void writeOperationNumber(SQLite::Database& database, std::int64_t number) {
  SQLite::Statement insert(database,
                           "INSERT INTO sqlite_sequence (name, seq) VALUES ('operations', ?)");
  insert.bind(1, number);
  insert.exec();
}

void writeSalvage(SQLite::Database& database, const Salvage& salvage) {
  SQLite::Transaction transaction(database);
  for (const QuarantinedDevice& device : salvage.quarantine) {
    writeQuarantine(database, device);
  }
  for (const EndedRow& row : salvage.ended) {
    writeEnded(database, row);
  }
  raiseGeneration(database, static_cast<std::uint64_t>(salvage.generation));
  writeOperationNumber(database, salvage.operation);
  transaction.commit();
}

/// Under the name `damaged`. False if not even its schema can be read.
bool attachDamaged(SQLite::Database& database, const Location& copy) {
  try {
    SQLite::Statement attach(database, "ATTACH ? AS damaged");
    attach.bind(1, std::filesystem::canonical(copy.file).string());
    attach.exec();
    return true;
  } catch (const SQLite::Exception& error) {
    if (!isDamage(error)) {
      throw;
    }
    return false;
  }
}

struct CopiedTable {
  std::string name;
  std::string columns;
};

/// Copies these tables, or none of them if a row of one cannot be read, or `parse` throws Error.
template <typename Parse>
bool copyTables(SQLite::Database& database, const std::vector<CopiedTable>& tables, Parse parse) {
  try {
    SQLite::Transaction transaction(database);
    for (const auto& [name, columns] : tables) {
      database.exec("INSERT INTO main." + name + " (" + columns + ") SELECT " + columns +
                    " FROM damaged." + name + " NOT INDEXED");
    }
    parse();
    transaction.commit();
    return true;
  } catch (const SQLite::Exception& error) {
    if (!isDamage(error)) {
      throw;
    }
  } catch (const Error&) {  // a damaged record, or one of a newer version
  }
  return false;
}

/// Only together: the journal of an operation says what becomes of its leases.
bool copyLeasesAndJournal(SQLite::Database& database) {
  return copyTables(database,
                    {{"leases", "domain, vf_name, pf, vf_index, generation, state, boot_id, lease"},
                     {"operations", "id, kind, domain, domain_name, boot_id"},
                     {"steps", "operation, position, status, action, undo, reason, disrupts"}},
                    [&] {
                      for (const Lease& lease : readLeases(database)) {
                        raiseGeneration(database, lease.generation);
                      }
                      readOperations(database);
                    });
}

void copySoftRoce(SQLite::Database& database) {
  copyTables(database, {{"soft_roce", "name, netdev, number, boot_id"}},
             [&] { readSoftRoceRecords(database); });
}

/// Returns whether it has the leases and the journal.
bool write(SQLite::Database& database, const Location& draft, const Location& copy,
           const Salvage& salvage) {
  database.exec("PRAGMA synchronous = FULL");
  migrate(database, draft);
  writeSalvage(database, salvage);
  const bool attached = attachDamaged(database, copy);
  const bool keptLeases = attached && copyLeasesAndJournal(database);
  if (attached) {
    copySoftRoce(database);
  }
  // Last: until then, all data is in the file itself, synced, and needs no checkpoint.
  database.execAndGet("PRAGMA main.journal_mode = WAL");
  return keptLeases;
}

/// Under its name, a replacement is always complete. Returns whether it has leases and journal.
bool writeReplacement(const Location& location, const Location& copy, const Salvage& salvage) {
  bool keptLeases = false;
  const Location draft{location.folder, location.folder / "vfpass-rebuilding.db"};
  for (const auto& file : {draft.file, walOf(draft), shmOf(draft),
                           std::filesystem::path(draft.file.string() + "-journal")}) {
    std::filesystem::remove(file);  // left by a process that was killed
  }
  makePrivateFile(draft.file);
  try {
    SQLite::Database database(draft.file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOFOLLOW);
    keptLeases = write(database, draft, copy, salvage);
  } catch (const SQLite::Exception& error) {
    throwSqliteFailure({error.getExtendedErrorCode(), 0, error.what()}, draft,
                       deadlines::rebuildDatabase);
  }
  std::filesystem::rename(draft.file, replacementOf(location));
  syncFolder(location.folder);
  return keptLeases;
}

/// Keeps other processes from committing to the file while it is copied and replaced; afterwards
/// they find that it has moved. If SQLite cannot lock it, its first page is damaged, without which
/// nobody opens it either.
class WriteLock {
 public:
  explicit WriteLock(const Location& location) {
    try {
      database_.emplace(location.file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOFOLLOW,
                        static_cast<int>(deadlines::rebuildDatabase.count()));
      transaction_.emplace(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    } catch (const SQLite::Exception& error) {
      if (!isDamage(error)) {
        throwSqliteFailure({error.getExtendedErrorCode(), 0, error.what()}, location,
                           deadlines::rebuildDatabase);
      }
    }
  }

 private:
  std::optional<SQLite::Database> database_;
  std::optional<SQLite::Transaction> transaction_;  ///< rolled back: it changes nothing
};

}  // namespace

std::filesystem::path putReplacementInPlace(const Location& location) {
  if (!isTaken(replacementOf(location))) {
    return {};
  }
  requireTrustedFile(replacementOf(location));
  const Location aside = freeName(location);
  // The WAL first: SQLite must not find it beside another database.
  moveAside(walOf(location), walOf(aside));
  moveAside(shmOf(location), shmOf(aside));
  nameAside(location.file, aside.file);
  std::filesystem::rename(replacementOf(location), location.file);
  syncFolder(location.folder);
  return aside.file;
}

void finishReplacement(const Location& location, std::chrono::milliseconds timeout) {
  if (isTaken(replacementOf(location))) {
    const FileLock lock = lockDatabase(location, timeout);
    putReplacementInPlace(location);
  }
}

SetAside setAsideCorruptDatabase(const std::filesystem::path& stateDirectory) {
  const Location location = databaseIn(stateDirectory);
  if (!isTaken(location.file)) {
    throw Error("cannot set aside " + printable(location.file.string()) + ": no such file");
  }
  const FileLock lock = lockDatabase(location, deadlines::rebuildDatabase);
  requireTrustedDatabase(location);
  const WriteLock writeLock(location);
  if (!isDamaged(location)) {
    throw Error("cannot set aside " + printable(location.file.string()) + ": not damaged", {},
                ExitCode::refused);
  }
  SetAside result;
  withPrivateCopy(location, [&](const Location& copy) {
    const Salvage salvage = salvageOf(copy);
    result.keptQuarantine = salvage.wholeQuarantine;
    result.keptLeases = writeReplacement(location, copy, salvage);
  });
  result.file = putReplacementInPlace(location);
  return result;
}

}  // namespace vfpass::state
