#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/state/database.hpp"

namespace vfpass::state {

// Each function runs inside its caller's transaction.

std::int64_t insertOperation(SQLite::Database& database, const Plan& plan,
                             const std::string& bootId);
/// Appends steps to an operation.
void insertSteps(SQLite::Database& database, std::int64_t operation,
                 const std::vector<Step>& steps);
/// Throws if the operation lacks any of these steps.
void updateSteps(SQLite::Database& database, std::int64_t operation, std::size_t first,
                 std::size_t count, StepStatus status);
void deleteOperation(SQLite::Database& database, std::int64_t operation);
std::vector<Operation> readOperations(SQLite::Database& database);
std::optional<Operation> readOperation(SQLite::Database& database, std::int64_t id);

}  // namespace vfpass::state
