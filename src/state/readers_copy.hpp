#pragma once

#include <SQLiteCpp/Database.h>

#include <chrono>

#include "location.hpp"

namespace vfpass::state {

/// Replaces, in one step, the copy of the database that the group of its directory may read, if the
/// directory lets the group in. The group must not open the database itself: a member could keep a
/// read lock on it or on the index of the WAL (fcntl(2)) and so stop every writer.
///
/// The caller has committed, so this never throws: a copy that cannot be written is removed,
/// because readers must not take it for the current state.
void replaceReadersCopy(SQLite::Database& database, const Location& location,
                        std::chrono::milliseconds timeout) noexcept;

}  // namespace vfpass::state
