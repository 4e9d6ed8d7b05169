#include "database_tables.hpp"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/VariadicBind.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "vfpass/state/record_json.hpp"

namespace vfpass::state {
namespace {

constexpr std::array<std::pair<StepStatus, std::string_view>, 5> statusNames{{
    {StepStatus::planned, "planned"},
    {StepStatus::started, "started"},
    {StepStatus::done, "done"},
    {StepStatus::undoing, "undoing"},
    {StepStatus::undone, "undone"},
}};

[[noreturn]] void throwNotInJournal(std::int64_t operation, const std::string& steps) {
  throw Error("operation " + std::to_string(operation) + ": " + steps + " not in the journal",
              "another vfpass process has completed it or rolled it back; run `vfpass status`");
}

std::string nameOf(StepStatus status) {
  const auto* const found =
      std::ranges::find_if(statusNames, [=](const auto& entry) { return entry.first == status; });
  return std::string(found->second);
}

StepStatus statusNamed(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(statusNames, [&](const auto& entry) { return entry.second == name; });
  if (found == statusNames.end()) {
    throwUnknownRecord("unknown step status '" + name + "'");
  }
  return found->first;
}

template <typename Value>
Value known(const std::optional<Value>& value, const std::string& text) {
  if (!value) {
    throwUnknownRecord("unknown value '" + text + "'");
  }
  return *value;
}

Uuid requireUuid(const std::string& text) {
  const auto domain = parseUuid(text);
  if (!domain) {
    throw CorruptDatabase("state database: damaged record: no valid UUID of a domain");
  }
  return *domain;
}

void insertStep(SQLite::Database& database, std::int64_t operation, std::size_t position,
                const Step& step) {
  SQLite::Statement insert(database,
                           "INSERT INTO steps (operation, position, status, action, undo, reason, "
                           "disrupts) VALUES (?, ?, ?, ?, ?, ?, ?)");
  SQLite::bind(insert, operation, static_cast<std::int64_t>(position), nameOf(StepStatus::planned),
               actionToJson(step.action), actionsToJson(step.undo), step.reason,
               step.disrupts ? 1 : 0);
  insert.exec();
}

std::vector<JournaledStep> readSteps(SQLite::Database& database, std::int64_t operation) {
  SQLite::Statement query(database,
                          "SELECT status, action, undo, reason, disrupts FROM steps WHERE "
                          "operation = ? ORDER BY position");
  query.bind(1, operation);
  std::vector<JournaledStep> steps;
  while (query.executeStep()) {
    JournaledStep journaled;
    journaled.status = statusNamed(query.getColumn(0).getString());
    journaled.step.action = actionFromJson(query.getColumn(1).getString());
    journaled.step.undo = actionsFromJson(query.getColumn(2).getString());
    journaled.step.reason = query.getColumn(3).getString();
    journaled.step.disrupts = query.getColumn(4).getInt() != 0;
    steps.push_back(std::move(journaled));
  }
  return steps;
}

Operation understood(SQLite::Database& database, SQLite::Statement& row) {
  Operation operation;
  operation.id = row.getColumn(0).getInt64();
  const std::string kind = row.getColumn(1).getString();
  operation.kind = known(parsePlanKind(kind), kind);
  const std::string domain = row.getColumn(2).getString();
  operation.domain = requireUuid(domain);
  operation.domainName = row.getColumn(3).getString();
  operation.bootId = row.getColumn(4).getString();
  operation.steps = readSteps(database, operation.id);
  return operation;
}

// One flipped bit makes a word unknown as well.
Operation readRow(SQLite::Database& database, SQLite::Statement& row) {
  try {
    return understood(database, row);
  } catch (const CorruptDatabase&) {
    throw;
  } catch (const Error& error) {
    const std::string number = std::to_string(row.getColumn(0).getInt64());
    throw UnknownOperation(
        std::string(error.what()) + " (operation " + number + ")",
        "if a newer vfpass wrote it, reinstall that version and run `vfpass recover` before you "
        "downgrade; otherwise the record is damaged: `vfpass recover --abandon " +
            number + "` forgets the operation, and leaves leases and devices as they are");
  }
}

std::vector<Operation> collectOperations(SQLite::Database& database, SQLite::Statement& query) {
  std::vector<Operation> operations;
  while (query.executeStep()) {
    operations.push_back(readRow(database, query));
  }
  return operations;
}

}  // namespace

std::int64_t insertOperation(SQLite::Database& database, const Plan& plan,
                             const std::string& bootId) {
  SQLite::Statement insert(
      database, "INSERT INTO operations (kind, domain, domain_name, boot_id) VALUES (?, ?, ?, ?)");
  SQLite::bind(insert, std::string(toString(plan.kind)), toString(plan.domain), plan.domainName,
               bootId);
  insert.exec();
  const std::int64_t operation = database.getLastInsertRowid();
  insertSteps(database, operation, plan.steps);
  return operation;
}

void insertSteps(SQLite::Database& database, std::int64_t operation,
                 const std::vector<Step>& steps) {
  SQLite::Statement count(database, "SELECT COUNT(*) FROM steps WHERE operation = ?");
  count.bind(1, operation);
  count.executeStep();
  auto position = static_cast<std::size_t>(count.getColumn(0).getInt64());
  for (const Step& step : steps) {
    insertStep(database, operation, position++, step);
  }
}

void updateSteps(SQLite::Database& database, std::int64_t operation, std::size_t first,
                 std::size_t count, StepStatus status) {
  SQLite::Statement update(database,
                           "UPDATE steps SET status = ? WHERE operation = ? AND position >= ? AND "
                           "position < ?");
  SQLite::bind(update, nameOf(status), operation, static_cast<std::int64_t>(first),
               static_cast<std::int64_t>(first + count));
  if (static_cast<std::size_t>(update.exec()) != count) {
    throwNotInJournal(operation, "steps " + std::to_string(first) + " to " +
                                     std::to_string(first + count) + " are");
  }
}

void updateAction(SQLite::Database& database, std::int64_t operation, std::size_t position,
                  const Action& action) {
  SQLite::Statement update(database,
                           "UPDATE steps SET action = ? WHERE operation = ? AND position = ?");
  SQLite::bind(update, actionToJson(action), operation, static_cast<std::int64_t>(position));
  if (update.exec() != 1) {
    throwNotInJournal(operation, "step " + std::to_string(position) + " is");
  }
}

void deleteOperation(SQLite::Database& database, std::int64_t operation) {
  SQLite::Statement erase(database, "DELETE FROM operations WHERE id = ?");
  erase.bind(1, operation);
  erase.exec();
}

std::vector<Operation> readOperations(SQLite::Database& database) {
  SQLite::Statement query(
      database, "SELECT id, kind, domain, domain_name, boot_id FROM operations ORDER BY id");
  return collectOperations(database, query);
}

std::vector<Operation> readOperationsOf(SQLite::Database& database, const Uuid& domain) {
  SQLite::Statement query(
      database,
      "SELECT id, kind, domain, domain_name, boot_id FROM operations WHERE domain = ? ORDER BY id");
  query.bind(1, toString(domain));
  return collectOperations(database, query);
}

std::optional<Operation> readOperation(SQLite::Database& database, std::int64_t id) {
  SQLite::Statement query(
      database, "SELECT id, kind, domain, domain_name, boot_id FROM operations WHERE id = ?");
  query.bind(1, id);
  return query.executeStep() ? std::optional(readRow(database, query)) : std::nullopt;
}

std::optional<OperationOwner> readOwner(SQLite::Database& database, std::int64_t id) {
  SQLite::Statement query(database, "SELECT domain, domain_name FROM operations WHERE id = ?");
  query.bind(1, id);
  if (!query.executeStep()) {
    return std::nullopt;
  }
  return OperationOwner{requireUuid(query.getColumn(0).getString()),
                        query.getColumn(1).getString()};
}

}  // namespace vfpass::state
