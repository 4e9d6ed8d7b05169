#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::state {
namespace {

using namespace std::chrono_literals;

HandOverRecord recordOf(const Lease& lease) {
  HandOverRecord record;
  record.time = "2026-11-28T12:00:00Z";
  record.domain = lease.domain;
  record.domainName = lease.domainName;
  record.entry = lease.entry;
  record.generation = lease.generation;
  record.device = lease.device;
  record.identity = "15b3:101d function 0 vf 1 serial MT1";
  record.reset = ResetResult{"2026-11-28T11:59:00Z", {"flr", "bus"}, ""};
  record.settings = vfOf(lease).settings;
  record.notNeutral = {"trust"};
  record.firmware = "28.39.1002";
  record.unobserved = {"a reason with \"quotes\""};
  return record;
}

class HandOverTest : public testing::Test {
 protected:
  Lease leased(unsigned index, const std::string& entry = "rail0") {
    Lease lease = sampleLease(1, entry, index);
    lease.device = PciAddress{0, 0x3b, 0, static_cast<std::uint8_t>(index)};
    lease.generation = database.nextGeneration();
    database.recordLease(lease);
    database.recordUse(
        {lease.device, lease.domain, UseBegin{"boot", ErrorCounts{3, 1, 2}, 40}, std::nullopt});
    return lease;
  }

  fake::TemporaryFolder folder;
  std::filesystem::path state = folder.path() / "state";
  Database database{state, Database::Open::createIfMissing, 500ms};
};

TEST_F(HandOverTest, EndOfALeaseIsRecordedAndEndsTheUseOfItsDevice) {
  const Lease lease = leased(1);
  const HandOverRecord record = recordOf(lease);
  database.endLeases({{record, "seal"}});
  EXPECT_TRUE(database.leases().empty());
  EXPECT_FALSE(database.deviceUse(lease.device));
  EXPECT_NE(database.adoptionFault(lease), "");
  ASSERT_EQ(database.handOvers().size(), 1U);
  EXPECT_EQ(database.handOvers()[0].record, record);
  EXPECT_EQ(database.handOvers()[0].text, handOverToJson(record));
  EXPECT_EQ(database.handOvers()[0].seal, "seal");
  EXPECT_TRUE(database.quarantined().empty());
}

TEST_F(HandOverTest, EndOfALeaseAndItsQuarantineAreOneTransaction) {
  const Lease first = leased(1, "rail0");
  const Lease second = leased(2, "rail1");
  HandOverRecord bad = recordOf(first);
  bad.quarantine = "AER has counted an error";
  HandOverRecord impossible = recordOf(second);
  impossible.generation = std::uint64_t{1} << 63U;  // SQLite has no such number
  EXPECT_THROW(database.endLeases({{bad, ""}, {impossible, ""}}), Error);
  EXPECT_EQ(database.leases().size(), 2U);
  EXPECT_TRUE(database.quarantined().empty());
  database.endLeases({{bad, ""}});
  EXPECT_EQ(
      database.quarantined(),
      (std::vector<QuarantinedDevice>{{first.device, bad.quarantine, bad.time, bad.identity}}));
}

// Recovery after a kill between the end of the lease and its mark in the journal.
TEST_F(HandOverTest, SecondEndOfALeaseKeepsTheFirstRecord) {
  const Lease lease = leased(1);
  const HandOverRecord record = recordOf(lease);
  database.endLeases({{record, "seal"}});
  HandOverRecord later = record;
  later.reset.reset();
  later.quarantine = "errors since the boot";
  database.endLeases({{later, ""}});
  ASSERT_EQ(database.handOvers().size(), 1U);
  EXPECT_EQ(database.handOvers()[0].record, record);
  EXPECT_TRUE(database.quarantined().empty());
}

// The recovery of an old operation: the device has another lease by now.
TEST_F(HandOverTest, EndOfALeaseThatHasEndedLeavesTheUseOfItsDevice) {
  const Lease old = leased(1);
  database.dropLease(old.domain, old.entry, old.generation);
  const Lease now = leased(1, "rail7");
  HandOverRecord late = recordOf(old);
  late.quarantine = "AER has counted an error";
  database.endLeases({{late, "seal"}});
  EXPECT_TRUE(database.deviceUse(now.device));
  EXPECT_TRUE(database.handOvers().empty());
  EXPECT_TRUE(database.quarantined().empty());
  EXPECT_EQ(database.leases(), std::vector<Lease>{now});
}

TEST_F(HandOverTest, EachLeaseOfAnEntryHasItsRecord) {
  const Lease first = leased(1);
  database.endLeases({{recordOf(first), ""}});
  const Lease second = leased(1);
  database.endLeases({{recordOf(second), ""}});
  ASSERT_EQ(database.handOvers().size(), 2U);
  EXPECT_EQ(database.handOvers()[0].record.generation, second.generation);
  EXPECT_EQ(database.handOvers()[1].record.generation, first.generation);
  EXPECT_NE(database.adoptionFault(first), "");
}

TEST_F(HandOverTest, DeviceStaysInQuarantineForTheFirstReasonUntilItIsReleased) {
  const PciAddress device{0, 0x3b, 0, 1};
  database.quarantine({device, "its reset failed", "2026-11-28T12:00:00Z"});
  database.quarantine({device, "it has errors", "2026-11-29T12:00:00Z"});
  const Database reader(state, Database::Open::readOnly, 500ms);
  ASSERT_EQ(reader.quarantined().size(), 1U);
  EXPECT_EQ(reader.quarantined()[0].reason, "its reset failed");
  EXPECT_TRUE(database.endQuarantine(device));
  EXPECT_FALSE(database.endQuarantine(device));
  EXPECT_TRUE(database.quarantined().empty());
}

TEST_F(HandOverTest, DamagedUseIsNoneAndIsReplaced) {
  const Lease lease = leased(1);
  SQLite::Database(state / "vfpass.db", SQLite::OPEN_READWRITE)
      .exec("UPDATE device_uses SET device_use = '{'");
  EXPECT_FALSE(database.deviceUse(lease.device));
  database.recordUse({lease.device, lease.domain, UseBegin{"boot", ErrorCounts{4}}, std::nullopt});
  EXPECT_TRUE(database.deviceUse(lease.device));
}

// It is left by a newer version before a downgrade.
TEST_F(HandOverTest, UseOfANewerVersionIsNoneAndIsReplaced) {
  const Lease lease = leased(1);
  SQLite::Database(state / "vfpass.db", SQLite::OPEN_READWRITE)
      .exec("UPDATE device_uses SET device_use = json_set(device_use, '$.later', 1)");
  EXPECT_FALSE(database.deviceUse(lease.device));
  database.recordUse({lease.device, lease.domain, UseBegin{"boot", ErrorCounts{4}}, std::nullopt});
  EXPECT_TRUE(database.deviceUse(lease.device));
}

TEST_F(HandOverTest, OldestRecordsOfAnEntryAreForgotten) {
  Lease last;
  for (int count = 0; count < 103; ++count) {
    last = leased(1);
    database.endLeases({{recordOf(last), ""}});
  }
  database.forgetEnded({last.domain}, 0);
  EXPECT_EQ(database.handOvers().size(), 100U);
  EXPECT_EQ(database.handOvers()[0].record.generation, last.generation);
  EXPECT_NE(database.adoptionFault(last), "");
}

TEST_F(HandOverTest, LeasesWithoutARecordDisplaceNone) {
  const Lease first = leased(1);
  database.endLeases({{recordOf(first), ""}});
  Lease last;
  for (int count = 0; count < 110; ++count) {
    last = leased(1);
    database.dropLease(last.domain, last.entry, last.generation);
  }
  database.forgetEnded({last.domain}, 0);
  ASSERT_EQ(database.handOvers().size(), 1U);
  EXPECT_EQ(database.handOvers()[0].record.generation, first.generation);
  EXPECT_NE(database.adoptionFault(last), "");
}

TEST_F(HandOverTest, MigrationKeepsWhichLeasesHaveEnded) {
  const Lease lease = leased(1);
  database.dropLease(lease.domain, lease.entry, lease.generation);
  SQLite::Database(state / "vfpass.db", SQLite::OPEN_READWRITE)
      .exec(
          "CREATE TABLE old (domain TEXT NOT NULL, vf_name TEXT NOT NULL, generation INTEGER NOT "
          "NULL, PRIMARY KEY (domain, vf_name)) STRICT; INSERT INTO old SELECT domain, vf_name, "
          "generation FROM ended_leases; DROP TABLE ended_leases; ALTER TABLE old RENAME TO "
          "ended_leases; DROP TABLE device_uses; DROP TABLE quarantine; PRAGMA user_version = 3");
  const Database reader(state, Database::Open::readOnly, 500ms);
  EXPECT_TRUE(reader.quarantined().empty());
  EXPECT_TRUE(reader.handOvers().empty());
  EXPECT_FALSE(reader.deviceUse(lease.device));
  EXPECT_NE(reader.adoptionFault(lease), "");
  Database migrated(state, Database::Open::createIfMissing, 500ms);
  EXPECT_NE(migrated.adoptionFault(lease), "");
  EXPECT_TRUE(migrated.handOvers().empty());
  migrated.quarantine({lease.device, "a reason", "now"});
  EXPECT_EQ(migrated.quarantined().size(), 1U);
}

// Format 4 had no identity; builds that were never released gave it one.
TEST_F(HandOverTest, MigrationKeepsTheQuarantineOfFormat4) {
  const Lease lease = leased(1);
  database.quarantine({lease.device, "its reset failed", "2026-11-28T12:00:00Z"});
  for (const std::string change : {"ALTER TABLE quarantine DROP COLUMN identity", ""}) {
    SQLite::Database(state / "vfpass.db", SQLite::OPEN_READWRITE)
        .exec(change + "; PRAGMA user_version = 4");
    const std::vector<QuarantinedDevice> expected{
        {lease.device, "its reset failed", "2026-11-28T12:00:00Z"}};
    EXPECT_EQ(Database(state, Database::Open::readOnly, 500ms).quarantined(), expected);
    Database migrated(state, Database::Open::createIfMissing, 500ms);
    EXPECT_EQ(migrated.quarantined(), expected);
    EXPECT_FALSE(migrated.deviceUse(lease.device));
    migrated.quarantine({PciAddress{0, 0x3b, 0, 7}, "a reason", "now", "an identity"});
    EXPECT_EQ(migrated.quarantined().back().identity, "an identity");
    EXPECT_TRUE(migrated.endQuarantine(PciAddress{0, 0x3b, 0, 7}));
  }
}

}  // namespace
}  // namespace vfpass::state
