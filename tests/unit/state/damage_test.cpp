// Damage of each table of the state database, and what the rebuilt database keeps.
#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::state {
namespace {

using std::chrono::milliseconds;

constexpr PciAddress badDevice{0, 0x3b, 0, 1};
constexpr PciAddress otherDevice{0, 0x3b, 0, 2};

class TableDamageTest : public testing::Test {
 protected:
  TableDamageTest() {
    Database database = open();
    database.recordLease(sampleLease(1, "rail0", 1));
    database.beginOperation(samplePlan(1), "boot-a");
    database.recordSoftRoce({"rxe0", "eth0", 1, "boot-a"});
    const Lease ended = endOne(database, "rail1", 2);
    database.recordUse(
        {ended.device, ended.domain, UseBegin{"boot-a", ErrorCounts{3, 0, 0}}, std::nullopt});
    database.quarantine(
        {badDevice, "its reset failed: timeout", "2026-11-28T12:00:00Z", "15b3:1021.0 serial 1"});
    database.quarantine({otherDevice, "its reset failed: timeout", "2026-11-28T12:00:00Z"});
  }
  static Lease endOne(Database& database, const std::string& entry, unsigned index) {
    Lease lease = sampleLease(1, entry, index);
    lease.generation = database.nextGeneration();
    database.recordLease(lease);
    HandOverRecord record;
    record.time = "2026-11-28T12:00:00Z";
    record.domain = lease.domain;
    record.entry = lease.entry;
    record.generation = lease.generation;
    record.device = lease.device;
    database.endLeases({{record, "seal"}});
    return lease;
  }
  [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "state"; }
  [[nodiscard]] std::filesystem::path file() const { return folder() / "vfpass.db"; }
  [[nodiscard]] Database open() const {
    return {folder(), Database::Open::createIfMissing, milliseconds(100)};
  }
  [[nodiscard]] Database reader() const {
    return {folder(), Database::Open::readOnly, milliseconds(100)};
  }
  void execute(const std::string& sql) const {
    SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec(sql);
  }
  /// Overwrites the first page of a table or of an index.
  void overwritePage(const std::string& name) const {
    int page = 0;
    {
      SQLite::Database database(file().string(), SQLite::OPEN_READWRITE);
      page = database.execAndGet("SELECT rootpage FROM sqlite_master WHERE name = '" + name + "'")
                 .getInt();
    }
    ASSERT_GT(page, 1);
    constexpr std::streamoff pageSize = 4096;
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp((page - 1) * pageSize);
    stream << std::string(pageSize, '\xaa');
  }
  void expectSetAside() const {
    EXPECT_THROW(reader().requireUndamaged(), CorruptDatabase);
    EXPECT_THROW(open().requireUndamaged(), CorruptDatabase);
    EXPECT_TRUE(std::filesystem::exists(setAsideCorruptDatabase(folder()).file));
    EXPECT_NO_THROW(reader().requireUndamaged());
    EXPECT_NO_THROW(open().requireUndamaged());
  }
  void expectQuarantine(const std::vector<PciAddress>& expected) const {
    std::vector<PciAddress> found;
    for (const auto& device : open().quarantined()) {
      found.push_back(device.device);
    }
    EXPECT_EQ(found, expected);
  }

  fake::TemporaryFolder temporary_;
};

TEST_F(TableDamageTest, IsNotFoundInAHealthyDatabase) {
  EXPECT_NO_THROW(reader().requireUndamaged());
  EXPECT_NO_THROW(open().requireUndamaged());
  EXPECT_EQ(errorOf([&] { return setAsideCorruptDatabase(folder()); }).code(), ExitCode::refused);
}

TEST_F(TableDamageTest, IsNoRecordOfANewerVersionThatNoCommandNeeds) {
  execute("UPDATE ended_leases SET record = '{\"later\": 1}'");
  execute("UPDATE device_uses SET device_use = '{\"later\": 1}'");
  EXPECT_NO_THROW(open().requireUndamaged());
}

struct RecordDamage {
  const char* name;
  const char* sql;
  bool keepsQuarantine = true;
};

class RecordDamageTest : public TableDamageTest,
                         public testing::WithParamInterface<RecordDamage> {};

TEST_P(RecordDamageTest, IsFoundAndSetAside) {
  execute(GetParam().sql);
  const auto aside = [&] { return setAsideCorruptDatabase(folder()); };
  EXPECT_THROW(reader().requireUndamaged(), CorruptDatabase);
  EXPECT_THROW(open().requireUndamaged(), CorruptDatabase);
  EXPECT_EQ(aside().keptQuarantine, GetParam().keepsQuarantine);
  EXPECT_NO_THROW(open().requireUndamaged());
  if (GetParam().keepsQuarantine) {
    expectQuarantine({badDevice, otherDevice});
  }
}

INSTANTIATE_TEST_SUITE_P(
    EachTable, RecordDamageTest,
    testing::Values(
        RecordDamage{"Lease", "UPDATE leases SET lease = substr(lease, 2)"},
        RecordDamage{"Generation", "UPDATE generation SET last = -1"},
        RecordDamage{"NoGeneration", "DELETE FROM generation"},
        RecordDamage{"Operation", "UPDATE operations SET domain = 'x'"},
        RecordDamage{"Step", "UPDATE steps SET undo = substr(undo, 2) WHERE position = 1"},
        RecordDamage{"SoftRoce", "UPDATE soft_roce SET number = -1"},
        RecordDamage{"EndedLease", "UPDATE ended_leases SET domain = 'x'"},
        RecordDamage{"EndedLeaseGeneration", "UPDATE ended_leases SET generation = -1"},
        RecordDamage{"HandOver", "UPDATE ended_leases SET record = substr(record, 2)"},
        RecordDamage{"DeviceUse", "UPDATE device_uses SET device_use = '{'"},
        RecordDamage{"NoEndedLeases", "DROP TABLE ended_leases"},
        RecordDamage{"NoDeviceUses", "DROP TABLE device_uses"},
        RecordDamage{"NoSoftRoce", "DROP TABLE soft_roce"},
        RecordDamage{"Quarantine", "UPDATE quarantine SET device = 'x' WHERE rowid = 2", false},
        RecordDamage{"NoQuarantine", "DROP TABLE quarantine", false},
        RecordDamage{"Format", "PRAGMA user_version = 0"}),
    [](const testing::TestParamInfo<RecordDamage>& test) { return test.param.name; });

class PageDamageTest : public TableDamageTest, public testing::WithParamInterface<const char*> {};

TEST_P(PageDamageTest, IsFoundAndSetAside) {
  overwritePage(GetParam());
  expectSetAside();
  if (std::string(GetParam()) != "quarantine") {
    expectQuarantine({badDevice, otherDevice});
  }
}

INSTANTIATE_TEST_SUITE_P(EachTable, PageDamageTest,
                         testing::Values("leases", "generation", "operations", "steps", "soft_roce",
                                         "ended_leases", "device_uses", "quarantine",
                                         "sqlite_autoindex_quarantine_1",
                                         "sqlite_autoindex_leases_2"));

class HistoryDamageTest : public TableDamageTest,
                          public testing::WithParamInterface<const char*> {};

// An interrupted attach or detach can still be completed or rolled back.
TEST_P(HistoryDamageTest, KeepsLeasesJournalAndSoftRoce) {
  const auto leases = open().leases();
  const auto operations = open().openOperations();
  overwritePage(GetParam());
  EXPECT_TRUE(setAsideCorruptDatabase(folder()).keptLeases);
  EXPECT_EQ(open().leases(), leases);
  EXPECT_GE(open().lastGeneration(), leases.at(0).generation);
  ASSERT_EQ(open().openOperations().size(), 1U);
  EXPECT_EQ(open().openOperations()[0].id, operations.at(0).id);
  EXPECT_EQ(open().openOperations()[0].steps.size(), operations.at(0).steps.size());
  EXPECT_EQ(open().softRoceRecords().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(EachTable, HistoryDamageTest,
                         testing::Values("generation", "ended_leases", "device_uses", "quarantine",
                                         "sqlite_autoindex_leases_2"));

TEST_F(TableDamageTest, KeepsLeasesAndJournalOnlyTogether) {
  for (const std::string change : {"UPDATE leases SET lease = '{'", "DROP TABLE steps",
                                   "UPDATE operations SET domain = 'x'"}) {
    open().recordLease(sampleLease(1, "rail0", 1));
    open().beginOperation(samplePlan(1), "boot-a");
    execute(change + "; DROP TABLE device_uses");
    EXPECT_FALSE(setAsideCorruptDatabase(folder()).keptLeases) << change;
    EXPECT_TRUE(open().leases().empty());
    EXPECT_TRUE(open().openOperations().empty());
    EXPECT_EQ(open().softRoceRecords().size(), 1U);
  }
}

// Without this, metadata that a domain gets again would bring the lease back.
TEST_F(TableDamageTest, KeepsWhichLeasesHaveEndedAndTheirRecords) {
  const auto before = open().handOvers();
  ASSERT_EQ(before.size(), 1U);
  const std::uint64_t last = open().lastGeneration();
  execute("UPDATE leases SET lease = '{'");
  expectSetAside();
  const Database rebuilt = open();
  ASSERT_EQ(rebuilt.handOvers().size(), 1U);
  EXPECT_EQ(rebuilt.handOvers()[0].text, before[0].text);
  EXPECT_EQ(rebuilt.handOvers()[0].seal, "seal");
  Lease ended = sampleLease(1, "rail1", 2);
  ended.generation = before[0].record.generation;
  EXPECT_NE(rebuilt.adoptionFault(ended), "");
  EXPECT_GE(rebuilt.lastGeneration(), last);
}

TEST_F(TableDamageTest, KeepsTheOtherEntriesOfADamagedQuarantine) {
  execute("UPDATE quarantine SET device = 'x' WHERE device = '0000:3b:00.2'");
  EXPECT_FALSE(setAsideCorruptDatabase(folder()).keptQuarantine);
  expectQuarantine({badDevice});
  EXPECT_EQ(open().quarantined().at(0).identity, "15b3:1021.0 serial 1");
}

TEST_F(TableDamageTest, KeepsTheQuarantineOfFormat4) {
  execute("ALTER TABLE quarantine DROP COLUMN identity; PRAGMA user_version = 4");
  execute("UPDATE leases SET lease = '{'");
  EXPECT_TRUE(setAsideCorruptDatabase(folder()).keptQuarantine);
  expectQuarantine({badDevice, otherDevice});
}

TEST_F(TableDamageTest, KeepsTheEndOfALeaseWhoseRecordIsDamaged) {
  execute("UPDATE ended_leases SET record = '{'");
  expectSetAside();
  Lease ended = sampleLease(1, "rail1", 2);
  ended.generation = 1;
  EXPECT_NE(open().adoptionFault(ended), "");
  EXPECT_TRUE(open().handOvers().empty());
}

// It would write into the file that is set aside.
TEST_F(TableDamageTest, ProcessThatHasTheOldFileOpenWritesNoMore) {
  Database writer = open();
  execute("UPDATE device_uses SET device_use = '{'");
  setAsideCorruptDatabase(folder());
  const Error error = errorOf([&] { writer.quarantine({PciAddress{0, 0x3b, 0, 3}, "a", "b"}); });
  EXPECT_THAT(error.what(), testing::HasSubstr("has been moved or replaced"));
  EXPECT_THAT(error.remedy(), testing::HasSubstr("vfpass recover"));
  EXPECT_THROW(writer.beginOperation(samplePlan(1), "boot-a"), Error);
  expectQuarantine({badDevice, otherDevice});
}

TEST_F(TableDamageTest, ChangeDuringWhichTheFileIsSetAsideIsNotCommitted) {
  Database writer = open();
  const PciAddress device{0, 0x3b, 0, 3};
  std::filesystem::path aside;
  const auto change = [&] {
    writer.quarantine({device, "a", "b"});
    aside = file().string() + ".moved";
    std::filesystem::rename(file(), aside);
  };
  EXPECT_THROW(writer.together(change), Error);
  std::filesystem::rename(aside, file());
  expectQuarantine({badDevice, otherDevice});
}

// What it commits between the copy and the replacement would be lost.
TEST_F(TableDamageTest, FileIsNotSetAsideWhileAnotherProcessChangesIt) {
  execute("UPDATE device_uses SET device_use = '{'");
  const PciAddress device{0, 0x3b, 0, 3};
  Database writer = open();
  std::optional<Error> refused;
  writer.together([&] {
    writer.quarantine({device, "a", "b"});
    refused = errorOf([&] { setAsideCorruptDatabase(folder()); });
  });
  EXPECT_THAT(refused->what(), testing::HasSubstr("locked"));
  setAsideCorruptDatabase(folder());
  expectQuarantine({badDevice, otherDevice, device});
}

// A number names the lock file of a writer, which may still live.
TEST_F(TableDamageTest, NumbersOfOperationsAreNotUsedAgain) {
  const std::int64_t ended = open().beginOperation(samplePlan(2), "boot-a");
  open().finishOperation(ended);
  execute("UPDATE operations SET domain = 'x'");
  setAsideCorruptDatabase(folder());
  EXPECT_EQ(open().beginOperation(samplePlan(2), "boot-a"), ended + 1);
}

// A process that was killed while it replaced the damaged database.
TEST_F(TableDamageTest, ReplacementIsCompletedByTheNextProcess) {
  execute("UPDATE leases SET lease = '{'");
  const auto aside = setAsideCorruptDatabase(folder()).file;
  for (const bool movedAway : {true, false}) {
    std::filesystem::rename(file(), folder() / "vfpass-rebuilt.db");
    if (!movedAway) {
      std::filesystem::rename(aside, file());
    }
    expectQuarantine({badDevice, otherDevice});
    EXPECT_FALSE(std::filesystem::exists(folder() / "vfpass-rebuilt.db"));
    EXPECT_NO_THROW(open().requireUndamaged());
  }
}

}  // namespace
}  // namespace vfpass::state
