#include "tombstone_table.hpp"

#include <SQLiteCpp/Statement.h>

namespace vfpass::state {

void writeTombstone(SQLite::Database& database, const Uuid& domain, const std::string& entry,
                    std::int64_t generation) {
  SQLite::Statement upsert(
      database,
      "INSERT INTO ended_leases (domain, vf_name, generation) VALUES (?, ?, ?) ON CONFLICT "
      "(domain, "
      "vf_name) DO UPDATE SET generation = max(generation, excluded.generation)");
  upsert.bind(1, toString(domain));
  upsert.bind(2, entry);
  upsert.bind(3, generation);
  upsert.exec();
}

std::optional<std::uint64_t> readTombstone(SQLite::Database& database, const Uuid& domain,
                                           const std::string& entry) {
  if (!database.tableExists("ended_leases")) {  // opened read-only, in an earlier format
    return std::nullopt;
  }
  SQLite::Statement query(database,
                          "SELECT generation FROM ended_leases WHERE domain = ? AND vf_name = ?");
  query.bind(1, toString(domain));
  query.bind(2, entry);
  return query.executeStep()
             ? std::optional(static_cast<std::uint64_t>(query.getColumn(0).getInt64()))
             : std::nullopt;
}

}  // namespace vfpass::state
