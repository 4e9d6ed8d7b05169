#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/hand_over.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/soft_roce.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {

/// Throws the error for a record that this version does not understand: unknown or missing members,
/// or an unknown value.
[[noreturn]] void throwUnknownRecord(const std::string& what);

// Each function runs inside its caller's transaction.

/// Whether the database has this format or a later one. Its tables may be missing all the same,
/// which is damage: a table that is not looked for would count as empty.
bool hasFormat(SQLite::Database& database, int format);

/// Throws CorruptDatabase unless every table is intact and each of its records can be read. A
/// record of a newer version is not damaged: it throws Error if commands need the record, and
/// UnknownOperation only if nothing else is wrong.
void requireUndamaged(SQLite::Database& database);

std::vector<Lease> readLeases(SQLite::Database& database);
std::vector<Lease> readLeasesOf(SQLite::Database& database, const Uuid& domain);
std::vector<Lease> readLeasesOn(SQLite::Database& database, const std::vector<PciAddress>& pfs);
/// Also nullopt if the lease has another generation.
std::optional<Lease> readLease(SQLite::Database& database, const Uuid& domain,
                               const std::string& entry, std::uint64_t generation);
/// Throws ExitCode::refused if another lease holds the VF.
void writeLease(SQLite::Database& database, const Lease& lease);
/// Deletes the tombstones of other domains than these, beyond the `kept` newest generations, and of
/// these domains all but the newest of each entry and those with its newest records.
void deleteTombstones(SQLite::Database& database, const std::set<Uuid>& domains, std::size_t kept);
/// Also records that this generation of the entry has ended.
bool deleteLease(SQLite::Database& database, const Uuid& domain, const std::string& entry,
                 std::uint64_t generation);
/// Why a lease from metadata must not be recorded: it has ended, or another lease holds its device.
/// Empty if it may be.
std::string adoptionFault(SQLite::Database& database, const Lease& lease);
/// Makes every future generation higher than this one.
void raiseGeneration(SQLite::Database& database, std::uint64_t generation);
std::uint64_t readGeneration(SQLite::Database& database);
std::uint64_t takeGeneration(SQLite::Database& database);

// Each function runs inside its caller's transaction.

std::int64_t insertOperation(SQLite::Database& database, const Plan& plan,
                             const std::string& bootId);
/// Appends steps to an operation.
void insertSteps(SQLite::Database& database, std::int64_t operation,
                 const std::vector<Step>& steps);
/// Throws if the operation lacks any of these steps.
void updateSteps(SQLite::Database& database, std::int64_t operation, std::size_t first,
                 std::size_t count, StepStatus status);
/// Throws if the operation lacks this step.
void updateAction(SQLite::Database& database, std::int64_t operation, std::size_t position,
                  const Action& action);
void deleteOperation(SQLite::Database& database, std::int64_t operation);
std::vector<Operation> readOperations(SQLite::Database& database);
std::vector<Operation> readOperationsOf(SQLite::Database& database, const Uuid& domain);
std::optional<Operation> readOperation(SQLite::Database& database, std::int64_t id);
std::optional<OperationOwner> readOwner(SQLite::Database& database, std::int64_t id);

// Each function runs inside its caller's transaction.

/// Empty for a database of format 1, which lacks the table.
std::vector<SoftRoceRecord> readSoftRoceRecords(SQLite::Database& database);
void writeSoftRoceRecord(SQLite::Database& database, const SoftRoceRecord& record);
void deleteSoftRoceRecord(SQLite::Database& database, const std::string& name);

// hand_over_table.cpp. Each function runs inside its caller's transaction. Those that read return
// nothing of a database before format 4, which lacks the tables.

std::vector<QuarantinedDevice> readQuarantine(SQLite::Database& database);
/// Does nothing if the device is in quarantine: the first reason stays.
void writeQuarantine(SQLite::Database& database, const QuarantinedDevice& device);
/// False if the device is not in quarantine.
bool deleteQuarantine(SQLite::Database& database, const PciAddress& device);
std::vector<DeviceUse> readUses(SQLite::Database& database);
std::optional<DeviceUse> readUse(SQLite::Database& database, const PciAddress& device);
void writeUse(SQLite::Database& database, const DeviceUse& use);
/// Deletes the lease, writes the record of its end and ends the use of its device. A lease that has
/// ended before stays as it is.
void endLease(SQLite::Database& database, const EndedLease& ended);
/// Newest first.
std::vector<StoredHandOver> readHandOvers(SQLite::Database& database);

}  // namespace vfpass::state
