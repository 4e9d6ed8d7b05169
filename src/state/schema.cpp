#include "sqlite_connection.hpp"

#include <SQLiteCpp/Transaction.h>

#include "database_tables.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

// Columns hold values that are searched or must be unique; the JSON in the last column holds
// everything.
// AUTOINCREMENT: the number of an operation names the lock file of its writer, so it is never
// reused.
constexpr const char* versionOne = R"sql(
  CREATE TABLE leases (
    domain TEXT NOT NULL,
    vf_name TEXT NOT NULL,
    pf TEXT NOT NULL,
    vf_index INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    lease TEXT NOT NULL,
    PRIMARY KEY (domain, vf_name),
    UNIQUE (pf, vf_index)
  ) STRICT;
  CREATE TABLE generation (last INTEGER NOT NULL) STRICT;
  INSERT INTO generation (last) VALUES (0);
  CREATE TABLE operations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    domain TEXT NOT NULL,
    domain_name TEXT NOT NULL,
    boot_id TEXT NOT NULL
  ) STRICT;
  CREATE TABLE steps (
    operation INTEGER NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    status TEXT NOT NULL,
    action TEXT NOT NULL,
    undo TEXT NOT NULL,
    reason TEXT NOT NULL,
    disrupts INTEGER NOT NULL,
    PRIMARY KEY (operation, position)
  ) STRICT;
  PRAGMA user_version = 1;
)sql";

constexpr const char* versionTwo = R"sql(
  CREATE TABLE soft_roce (
    name TEXT PRIMARY KEY,
    netdev TEXT NOT NULL,
    number INTEGER,
    boot_id TEXT NOT NULL
  ) STRICT;
  PRAGMA user_version = 2;
)sql";

// Ended leases are not rebuilt from metadata, even if a domain gets the metadata again.
constexpr const char* versionThree = R"sql(
  CREATE TABLE ended_leases (
    domain TEXT NOT NULL,
    vf_name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (domain, vf_name)
  ) STRICT;
  PRAGMA user_version = 3;
)sql";

// Each lease of an entry has its own record, so the generation becomes part of the key.
constexpr const char* versionFour = R"sql(
  CREATE TABLE handed_over (
    domain TEXT NOT NULL,
    vf_name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    record TEXT NOT NULL DEFAULT '',
    seal TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (domain, vf_name, generation)
  ) STRICT;
  INSERT INTO handed_over (domain, vf_name, generation)
    SELECT domain, vf_name, generation FROM ended_leases;
  DROP TABLE ended_leases;
  ALTER TABLE handed_over RENAME TO ended_leases;
  CREATE TABLE device_uses (
    device TEXT PRIMARY KEY,
    device_use TEXT NOT NULL
  ) STRICT;
  CREATE TABLE quarantine (
    device TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    since TEXT NOT NULL
  ) STRICT;
  PRAGMA user_version = 4;
)sql";

// Builds that were never released wrote format 4 with other members in the uses of devices, or with
// a column `identity`.
constexpr const char* versionFive = R"sql(
  CREATE TABLE quarantined (
    device TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    since TEXT NOT NULL,
    identity TEXT NOT NULL
  ) STRICT;
  INSERT INTO quarantined (device, reason, since, identity)
    SELECT device, reason, since, '' FROM quarantine;
  DROP TABLE quarantine;
  ALTER TABLE quarantined RENAME TO quarantine;
  DELETE FROM device_uses;
  PRAGMA user_version = 5;
)sql";

int storedVersion(SQLite::Database& database) {
  return database.execAndGet("PRAGMA user_version").getInt();
}

bool hasOurTables(SQLite::Database& database) {
  return database
             .execAndGet(
                 "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('leases', 'generation', "
                 "'operations', 'steps', 'soft_roce', 'ended_leases', 'device_uses', "
                 "'quarantine')")
             .getInt() > 0;
}

}  // namespace

bool hasFormat(SQLite::Database& database, int format) { return storedVersion(database) >= format; }

int readSchemaVersion(SQLite::Database& database, const Location& location) {
  const int version = storedVersion(database);
  // The last condition: another process can have created the tables since, with their version.
  if (version < 1 && hasOurTables(database) && storedVersion(database) < 1) {
    throw CorruptDatabase("state database " + printable(location.file.string()) +
                          " is damaged: it has tables but no format number");
  }
  if (version > schemaVersion) {
    throw Error("state database " + printable(location.file.string()) + " has format " +
                    std::to_string(version) + "; this vfpass supports formats up to " +
                    std::to_string(schemaVersion),
                "a newer vfpass wrote it; reinstall that version");
  }
  return version;
}

void migrate(SQLite::Database& database, const Location& location) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const int found = readSchemaVersion(database, location);
  if (found < 1) {
    database.exec(versionOne);
  }
  if (found < 2) {
    database.exec(versionTwo);
  }
  if (found < 3) {
    database.exec(versionThree);
  }
  if (found < 4) {
    database.exec(versionFour);
  }
  if (found < 5) {
    database.exec(versionFive);
  }
  transaction.commit();
}

}  // namespace vfpass::state
