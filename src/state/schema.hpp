#pragma once

#include <SQLiteCpp/Database.h>

#include "location.hpp"

namespace vfpass::state {

/// The schema version that this program writes (`PRAGMA user_version`).
inline constexpr int schemaVersion = 3;

/// Returns 0 for an empty database. Throws Error if a newer vfpass wrote it, and CorruptDatabase if
/// it has lost its number.
int readSchemaVersion(SQLite::Database& database, const Location& location);

/// Migrates the database to `schemaVersion` in one transaction; does nothing if it is current.
void migrate(SQLite::Database& database, const Location& location);

}  // namespace vfpass::state
