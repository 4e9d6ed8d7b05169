#include "database_tables.hpp"

#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <limits>

#include "state_folder.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

std::uint32_t numberIn(std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
    throw CorruptDatabase("state database: damaged record: no valid number of an RDMA device");
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

std::vector<SoftRoceRecord> readSoftRoceRecords(SQLite::Database& database) {
  std::vector<SoftRoceRecord> records;
  if (!hasFormat(database, 2)) {
    return records;
  }
  SQLite::Statement query(database,
                          "SELECT name, netdev, number, boot_id FROM soft_roce ORDER BY name");
  while (query.executeStep()) {
    SoftRoceRecord record;
    record.name = query.getColumn(0).getString();
    record.netdev = query.getColumn(1).getString();
    if (!query.isColumnNull(2)) {
      record.number = numberIn(query.getColumn(2).getInt64());
    }
    record.bootId = query.getColumn(3).getString();
    records.push_back(std::move(record));
  }
  return records;
}

void writeSoftRoceRecord(SQLite::Database& database, const SoftRoceRecord& record) {
  SQLite::Statement insert(
      database,
      "INSERT OR REPLACE INTO soft_roce (name, netdev, number, boot_id) VALUES (?, ?, ?, ?)");
  insert.bind(1, record.name);
  insert.bind(2, record.netdev);
  if (record.number) {
    insert.bind(3, *record.number);
  }
  insert.bind(4, record.bootId);
  insert.exec();
}

void deleteSoftRoceRecord(SQLite::Database& database, const std::string& name) {
  SQLite::Statement remove(database, "DELETE FROM soft_roce WHERE name = ?");
  remove.bind(1, name);
  remove.exec();
}

}  // namespace vfpass::state
