#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::state {

// Each function runs inside its caller's transaction.

std::vector<Lease> readLeases(SQLite::Database& database);
std::vector<Lease> readLeasesOf(SQLite::Database& database, const Uuid& domain);
/// Also nullopt if the lease has another generation.
std::optional<Lease> readLease(SQLite::Database& database, const Uuid& domain,
                               const std::string& entry, std::uint64_t generation);
/// Throws ExitCode::refused if another lease holds the VF.
void writeLease(SQLite::Database& database, const Lease& lease);
/// Also records that this generation of the entry has ended.
/// Deletes the tombstones of other domains than these, beyond the `kept` newest generations.
void deleteTombstones(SQLite::Database& database, const std::set<Uuid>& domains, std::size_t kept);
bool deleteLease(SQLite::Database& database, const Uuid& domain, const std::string& entry,
                 std::uint64_t generation);
/// Why a lease from metadata must not be recorded: it has ended, or another lease holds its device.
/// Empty if it may be.
std::string adoptionFault(SQLite::Database& database, const Lease& lease);
/// Makes every future generation higher than this one.
void raiseGeneration(SQLite::Database& database, std::uint64_t generation);
std::uint64_t readGeneration(SQLite::Database& database);
std::uint64_t takeGeneration(SQLite::Database& database);

}  // namespace vfpass::state
