#pragma once

#include <SQLiteCpp/Database.h>

#include "location.hpp"

namespace vfpass::state {

/// The version that this program writes (`PRAGMA user_version`).
inline constexpr int schemaVersion = 3;

/// 0: nothing in there yet. Throws Error when a newer vfpass wrote the database.
int readSchemaVersion(SQLite::Database& database, const Location& location);

/// Brings the database to `schemaVersion`, in one transaction; nothing to do when it is there.
void migrate(SQLite::Database& database, const Location& location);

}  // namespace vfpass::state
