#include <SQLiteCpp/Statement.h>

#include "database_tables.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

/// Compares each index with its table, too; quick_check does not.
void requireIntegrity(SQLite::Database& database) {
  const std::string problem = database.execAndGet("PRAGMA integrity_check(1)").getString();
  if (problem != "ok") {
    throw CorruptDatabase("state database is damaged: " + printable(problem));
  }
}

/// No command needs these records of a newer version.
template <typename Read>
void requireParsing(Read read) {
  try {
    read();
  } catch (const CorruptDatabase&) {
    throw;
  } catch (const Error&) {
    return;
  }
}

void requireEndedLeases(SQLite::Database& database) {
  if (!hasFormat(database, 3)) {
    return;
  }
  SQLite::Statement query(database, "SELECT domain, vf_name, generation FROM ended_leases");
  while (query.executeStep()) {
    if (!parseUuid(query.getColumn(0).getString()) || query.getColumn(2).getInt64() < 0) {
      throw CorruptDatabase("state database: damaged record: no valid end of a lease");
    }
  }
}

}  // namespace

void requireUndamaged(SQLite::Database& database) {
  requireIntegrity(database);
  readLeases(database);
  readSoftRoceRecords(database);
  readQuarantine(database);
  readGeneration(database);
  requireEndedLeases(database);
  requireParsing([&] { readHandOvers(database); });
  requireParsing([&] { readUses(database); });
  readOperations(database);
}

}  // namespace vfpass::state
