#pragma once

#include <SQLiteCpp/Database.h>

#include <string>
#include <vector>

#include "vfpass/soft_roce.hpp"

namespace vfpass::state {

// Each function runs inside its caller's transaction.

/// Empty for a database of format 1, which lacks the table.
std::vector<SoftRoceRecord> readSoftRoceRecords(SQLite::Database& database);
void writeSoftRoceRecord(SQLite::Database& database, const SoftRoceRecord& record);
void deleteSoftRoceRecord(SQLite::Database& database, const std::string& name);

}  // namespace vfpass::state
