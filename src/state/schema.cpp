#include "schema.hpp"

#include <SQLiteCpp/Transaction.h>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::state {
namespace {

// Columns hold what is searched for or must be unique; the JSON beside them holds everything.
// AUTOINCREMENT: an operation's number names its writer's lock file, so it is never given twice.
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

// What has ended is not rebuilt from metadata, whoever puts them back into a domain.
constexpr const char* versionThree = R"sql(
  CREATE TABLE ended_leases (
    domain TEXT NOT NULL,
    vf_name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (domain, vf_name)
  ) STRICT;
  PRAGMA user_version = 3;
)sql";

}  // namespace

int readSchemaVersion(SQLite::Database& database, const Location& location) {
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  if (version > schemaVersion) {
    throw Error("state database " + printable(location.file.string()) + " has format " +
                    std::to_string(version) + ", this vfpass knows formats up to " +
                    std::to_string(schemaVersion),
                "it was written by a newer vfpass: install that version again");
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
  transaction.commit();
}

}  // namespace vfpass::state
