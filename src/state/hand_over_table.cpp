#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/VariadicBind.h>

#include "database_tables.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::state {
namespace {

bool hasHandOverTables(SQLite::Database& database) { return hasFormat(database, 4); }

PciAddress addressIn(const std::string& text) {
  const auto address = parsePciAddress(text);
  if (!address) {
    throw CorruptDatabase("state database: damaged record: no valid PCI address");
  }
  return *address;
}

void deleteUse(SQLite::Database& database, const PciAddress& device) {
  SQLite::Statement erase(database, "DELETE FROM device_uses WHERE device = ?");
  erase.bind(1, toString(device));
  erase.exec();
}

// False if the end of this lease has a record.
bool writeRecord(SQLite::Database& database, const EndedLease& ended) {
  const HandOverRecord& record = ended.record;
  SQLite::Statement update(
      database,
      "UPDATE ended_leases SET record = ?, seal = ? WHERE domain = ? AND vf_name = ? AND "
      "generation = ? AND record = ''");
  SQLite::bind(update, handOverToJson(record), ended.seal, toString(record.domain), record.entry,
               static_cast<std::int64_t>(record.generation));
  return update.exec() > 0;
}

}  // namespace

std::vector<QuarantinedDevice> readQuarantine(SQLite::Database& database) {
  std::vector<QuarantinedDevice> devices;
  if (!hasHandOverTables(database)) {
    return devices;
  }
  const std::string identity = hasFormat(database, 5) ? "identity" : "''";
  SQLite::Statement query(
      database, "SELECT device, reason, since, " + identity + " FROM quarantine ORDER BY device");
  while (query.executeStep()) {
    devices.push_back({addressIn(query.getColumn(0).getString()), query.getColumn(1).getString(),
                       query.getColumn(2).getString(), query.getColumn(3).getString()});
  }
  return devices;
}

void writeQuarantine(SQLite::Database& database, const QuarantinedDevice& device) {
  SQLite::Statement insert(
      database,
      "INSERT INTO quarantine (device, reason, since, identity) VALUES (?, ?, ?, ?) ON CONFLICT DO "
      "NOTHING");
  SQLite::bind(insert, toString(device.device), device.reason, device.since, device.identity);
  insert.exec();
}

bool deleteQuarantine(SQLite::Database& database, const PciAddress& device) {
  SQLite::Statement erase(database, "DELETE FROM quarantine WHERE device = ?");
  erase.bind(1, toString(device));
  return erase.exec() > 0;
}

std::vector<DeviceUse> readUses(SQLite::Database& database) {
  std::vector<DeviceUse> uses;
  if (!hasHandOverTables(database)) {
    return uses;
  }
  SQLite::Statement query(database, "SELECT device_use FROM device_uses ORDER BY device");
  while (query.executeStep()) {
    uses.push_back(deviceUseFromJson(query.getColumn(0).getString()));
  }
  return uses;
}

std::optional<DeviceUse> readUse(SQLite::Database& database, const PciAddress& device) {
  if (!hasHandOverTables(database)) {
    return std::nullopt;
  }
  SQLite::Statement query(database, "SELECT device_use FROM device_uses WHERE device = ?");
  query.bind(1, toString(device));
  if (!query.executeStep()) {
    return std::nullopt;
  }
  try {
    return deviceUseFromJson(query.getColumn(0).getString());
  } catch (const Error&) {  // also a record of a newer version
    return std::nullopt;
  }
}

void writeUse(SQLite::Database& database, const DeviceUse& use) {
  SQLite::Statement upsert(database,
                           "INSERT INTO device_uses (device, device_use) VALUES (?, ?) ON CONFLICT "
                           "(device) DO UPDATE SET device_use = excluded.device_use");
  SQLite::bind(upsert, toString(use.device), deviceUseToJson(use));
  upsert.exec();
}

// A recovery ends leases again whose end was not journaled any more. What it sees then is not what
// the device was like at their end: its use has ended, too, and another lease may have it.
void endLease(SQLite::Database& database, const EndedLease& ended) {
  const HandOverRecord& record = ended.record;
  if (!deleteLease(database, record.domain, record.entry, record.generation) ||
      !writeRecord(database, ended)) {
    return;
  }
  deleteUse(database, record.device);
  if (!record.quarantine.empty()) {
    writeQuarantine(database, {record.device, record.quarantine, record.time, record.identity});
  }
}

std::vector<StoredHandOver> readHandOvers(SQLite::Database& database) {
  std::vector<StoredHandOver> records;
  if (!hasHandOverTables(database)) {
    return records;
  }
  SQLite::Statement query(database,
                          "SELECT record, seal FROM ended_leases WHERE record <> '' ORDER BY "
                          "generation DESC, domain, vf_name");
  while (query.executeStep()) {
    const std::string text = query.getColumn(0).getString();
    records.push_back({handOverFromJson(text), text, query.getColumn(1).getString()});
  }
  return records;
}

}  // namespace vfpass::state
