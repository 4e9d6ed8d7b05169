#include "database_tables.hpp"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/VariadicBind.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::state {
namespace {

/// Records of one entry of an existing domain. Its newest generation stays in any case.
constexpr std::size_t recordsOfEntry = 100;

/// The ended leases of one entry that are kept.
struct KeptOfEntry {
  std::size_t leases = 0;
  std::size_t records = 0;

  /// For each lease, newest first. Those without a record, such as attaches that were rolled back,
  /// must not displace records.
  bool keeps(bool hasRecord) {
    const bool kept = leases == 0 || (hasRecord && records < recordsOfEntry);
    leases += kept ? 1 : 0;
    records += kept && hasRecord ? 1 : 0;
    return kept;
  }
};

/// SQLite integers are signed: a greater generation (from edited metadata) would read back negative
/// and count as older than all others.
std::int64_t storedGeneration(std::uint64_t generation) {
  if (generation > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error("generation " + std::to_string(generation) + " is out of range",
                "the domain's vfpass metadata was edited; run `vfpass detach`, then attach again");
  }
  return static_cast<std::int64_t>(generation);
}

std::vector<Lease> collect(SQLite::Statement& query) {
  std::vector<Lease> leases;
  while (query.executeStep()) {
    leases.push_back(leaseFromJson(query.getColumn(0).getString()));
  }
  return leases;
}

// A PCI function is the only device under its own address, so any index is unique there.
unsigned indexOf(const Lease& lease) { return vfIndexOf(lease).value_or(0); }

std::string ownerOf(const Lease& lease) {
  return "domain " + printable(lease.domainName) + " (" + toString(lease.domain) + ")";
}

void refuseTakenVf(SQLite::Database& database, const Lease& lease) {
  SQLite::Statement query(database,
                          "SELECT lease FROM leases WHERE pf = ? AND vf_index = ? AND NOT (domain "
                          "= ? AND vf_name = ?)");
  SQLite::bind(query, toString(lease.pf), indexOf(lease), toString(lease.domain), lease.entry);
  if (!query.executeStep()) {
    return;
  }
  const Lease holder = leaseFromJson(query.getColumn(0).getString());
  throw Error(
      describeDevice(lease) + " is leased to " + ownerOf(holder) + " as '" +
          printable(holder.entry) + "'",
      "choose another index, or run `vfpass detach " + shellArgument(holder.domainName) + "` first",
      ExitCode::refused);
}

/// A lease rebuilt from metadata has a generation that a lost database had issued.
void raiseGenerationTo(SQLite::Database& database, std::int64_t seen) {
  SQLite::Statement update(database, "UPDATE generation SET last = max(last, ?)");
  update.bind(1, seen);
  update.exec();
}

// Records that this and all older generations of the entry have ended.
void writeTombstone(SQLite::Database& database, const Uuid& domain, const std::string& entry,
                    std::int64_t generation) {
  SQLite::Statement upsert(
      database,
      "INSERT INTO ended_leases (domain, vf_name, generation) VALUES (?, ?, ?) ON CONFLICT DO "
      "NOTHING");
  SQLite::bind(upsert, toString(domain), entry, generation);
  upsert.exec();
}

// The highest ended generation of this entry; nullopt if none has ended.
std::optional<std::uint64_t> readTombstone(SQLite::Database& database, const Uuid& domain,
                                           const std::string& entry) {
  if (!hasFormat(database, 3)) {  // opened read-only, in an earlier format
    return std::nullopt;
  }
  SQLite::Statement query(
      database, "SELECT max(generation) FROM ended_leases WHERE domain = ? AND vf_name = ?");
  SQLite::bind(query, toString(domain), entry);
  return query.executeStep() && !query.isColumnNull(0)
             ? std::optional(static_cast<std::uint64_t>(query.getColumn(0).getInt64()))
             : std::nullopt;
}

}  // namespace

std::vector<Lease> readLeases(SQLite::Database& database) {
  SQLite::Statement query(database, "SELECT lease FROM leases ORDER BY domain, vf_name");
  return collect(query);
}

std::vector<Lease> readLeasesOf(SQLite::Database& database, const Uuid& domain) {
  SQLite::Statement query(database, "SELECT lease FROM leases WHERE domain = ? ORDER BY vf_name");
  query.bind(1, toString(domain));
  return collect(query);
}

std::vector<Lease> readLeasesOn(SQLite::Database& database, const std::vector<PciAddress>& pfs) {
  std::vector<Lease> leases;
  for (const PciAddress& pf : pfs) {
    SQLite::Statement query(database, "SELECT lease FROM leases WHERE pf = ? ORDER BY vf_index");
    query.bind(1, toString(pf));
    std::ranges::move(collect(query), std::back_inserter(leases));
  }
  return leases;
}

std::optional<Lease> readLease(SQLite::Database& database, const Uuid& domain,
                               const std::string& entry, std::uint64_t generation) {
  SQLite::Statement query(
      database, "SELECT lease FROM leases WHERE domain = ? AND vf_name = ? AND generation = ?");
  SQLite::bind(query, toString(domain), entry, storedGeneration(generation));
  const std::vector<Lease> found = collect(query);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

void writeLease(SQLite::Database& database, const Lease& lease) {
  refuseTakenVf(database, lease);
  const std::int64_t generation = storedGeneration(lease.generation);
  SQLite::Statement upsert(
      database,
      "INSERT INTO leases (domain, vf_name, pf, vf_index, generation, state, boot_id, lease) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (domain, vf_name) DO UPDATE SET "
      "pf = excluded.pf, vf_index = excluded.vf_index, generation = excluded.generation, "
      "state = excluded.state, boot_id = excluded.boot_id, lease = excluded.lease");
  SQLite::bind(upsert, toString(lease.domain), lease.entry, toString(lease.pf), indexOf(lease),
               generation, std::string(toString(lease.state)), lease.bootId, leaseToJson(lease));
  upsert.exec();
  raiseGenerationTo(database, generation);
}

void raiseGeneration(SQLite::Database& database, std::uint64_t generation) {
  raiseGenerationTo(database, storedGeneration(generation));
}

void deleteTombstones(SQLite::Database& database, const std::set<Uuid>& domains, std::size_t kept) {
  SQLite::Statement query(database,
                          "SELECT domain, vf_name, generation, record <> '' FROM ended_leases "
                          "ORDER BY generation DESC");
  std::vector<std::tuple<std::string, std::string, std::int64_t>> surplus;
  std::map<std::pair<std::string, std::string>, KeptOfEntry> ofEntry;
  for (std::size_t others = 0; query.executeStep();) {
    const std::string domain = query.getColumn(0).getString();
    const std::string entry = query.getColumn(1).getString();
    const auto uuid = parseUuid(domain);
    const bool exists = uuid && domains.contains(*uuid);
    const bool hasRecord = query.getColumn(3).getInt() != 0;
    const bool isKept = exists ? ofEntry[{domain, entry}].keeps(hasRecord) : ++others <= kept;
    if (!isKept) {
      surplus.emplace_back(domain, entry, query.getColumn(2).getInt64());
    }
  }
  for (const auto& [domain, entry, generation] : surplus) {
    SQLite::Statement erase(
        database, "DELETE FROM ended_leases WHERE domain = ? AND vf_name = ? AND generation = ?");
    SQLite::bind(erase, domain, entry, generation);
    erase.exec();
  }
}

bool deleteLease(SQLite::Database& database, const Uuid& domain, const std::string& entry,
                 std::uint64_t generation) {
  writeTombstone(database, domain, entry, storedGeneration(generation));
  SQLite::Statement erase(database,
                          "DELETE FROM leases WHERE domain = ? AND vf_name = ? AND generation = ?");
  SQLite::bind(erase, toString(domain), entry, storedGeneration(generation));
  return erase.exec() > 0;
}

std::string adoptionFault(SQLite::Database& database, const Lease& lease) {
  storedGeneration(lease.generation);
  const auto ended = readTombstone(database, lease.domain, lease.entry);
  if (ended && lease.generation <= *ended) {
    return "it has ended (generation " + std::to_string(lease.generation) + ")";
  }
  for (const Lease& other : readLeasesOn(database, {lease.pf})) {
    if (sameDevice(other, lease)) {
      return describeDevice(lease) + " is leased to " + ownerOf(other);
    }
  }
  return {};
}

std::uint64_t readGeneration(SQLite::Database& database) {
  SQLite::Statement read(database, "SELECT last FROM generation");
  const std::int64_t last = read.executeStep() ? read.getColumn(0).getInt64() : -1;
  if (last < 0) {
    throw CorruptDatabase("state database: damaged record: no valid generation number");
  }
  return static_cast<std::uint64_t>(last);
}

std::uint64_t takeGeneration(SQLite::Database& database) {
  const auto last = static_cast<std::int64_t>(readGeneration(database));
  if (last == std::numeric_limits<std::int64_t>::max()) {
    throw Error("no generation number is left after " + std::to_string(last),
                "a domain's vfpass metadata was edited; detach that domain, move the database "
                "aside, then run `vfpass recover`");
  }
  raiseGenerationTo(database, last + 1);
  return static_cast<std::uint64_t>(last + 1);
}

}  // namespace vfpass::state
