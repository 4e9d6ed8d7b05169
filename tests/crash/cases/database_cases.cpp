// Damaged and lost records of vfpass.
#include <sqlite3.h>

#include <cerrno>
#include <chrono>
#include <fstream>

#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/verification_records.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

constexpr const char* database = "var/lib/vfpass/vfpass.db";

void execute(const World& world, const std::string& statement) {
  sqlite3* opened = nullptr;
  sqlite3_open((world.files.root() / database).c_str(), &opened);
  const int error = sqlite3_exec(opened, statement.c_str(), nullptr, nullptr, nullptr);
  sqlite3_close(opened);
  if (error != SQLITE_OK) {
    throw std::runtime_error(statement + ": " + sqlite3_errstr(error));
  }
}

std::string rowOf(const World& world, const std::string& query) {
  sqlite3* opened = nullptr;
  sqlite3_open((world.files.root() / database).c_str(), &opened);
  std::string row;
  const auto take = [](void* text, int, char** values, char**) {
    *static_cast<std::string*>(text) = values[0] == nullptr ? "" : values[0];
    return 0;
  };
  sqlite3_exec(opened, query.c_str(), take, &row, nullptr);
  sqlite3_close(opened);
  return row;
}

// All other VMs work after the recovery.
void expectWorkingVm(Case& test, const std::string& vm) {
  test.expectSuccess(test.start(vm));
  test.expectSuccess(test.stop(vm));
  test.expectSuccess(test.run({"attach", vm}));
  test.expectSuccess(test.run({"detach", vm}));
}

// A row of vm0's operation; vm1 has nothing to do with it.
void damagedRecord(Case& test) {
  setUpVms(test.world, 2);
  test.run({"attach", "vm1"});
  test.run({"attach", "vm0"}, killBeforeDefine());
  execute(test.world, "UPDATE steps SET action = substr(action, 2) WHERE position = 1");
  test.run({"status"});
  test.run({"recover"});
  test.expectSuccess(test.run({"recover"}));
  expectWorkingVm(test, "vm1");
}

// One flipped bit makes a word of vm0's operation unknown, as if a newer vfpass had written it. The
// originals are in the lease, which stays.
void unknownWord(Case& test) {
  setUpVms(test.world, 2);
  test.expectSuccess(test.run({"attach", "vm1"}));
  const std::string before = test.state();
  test.run({"attach", "vm0"}, killBeforeDefine());
  execute(test.world, "UPDATE steps SET status = 'eone' WHERE position = 0");
  const std::string number = rowOf(test.world, "SELECT id FROM operations");
  for (const auto& words : {std::vector<std::string>{"recover"}, {"gc"}, {"attach", "vm1"}}) {
    test.expectRefusal(test.run(words), "vfpass recover --abandon " + number);
  }
  test.expectSuccess(test.run({"recover", "--abandon", number}));
  test.expectSuccess(test.run({"recover"}));
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectConsistent();
  test.expectSuccess(test.run({"detach", "vm0"}));
  test.expectState({before});
  expectWorkingVm(test, "vm1");
}

// Every page except the first one.
void damagedPages(Case& test) {
  setUpVms(test.world, 2);
  test.run({"attach", "vm1"});
  const auto file = test.world.files.root() / database;
  const auto size = std::filesystem::file_size(file);
  constexpr std::size_t page = 4096;
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(page);
  stream << std::string(size - page, '\xaa');
  stream.close();
  test.run({"status"});
  test.run({"recover"});
  test.expectSuccess(test.run({"recover"}));
  test.expectSuccess(test.run({"gc"}));
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectConsistent();
  expectWorkingVm(test, "vm1");
}

void overwriteTable(const World& world, const std::string& table) {
  constexpr long size = 4096;
  const long number =
      std::stol(rowOf(world, "SELECT rootpage FROM sqlite_master WHERE name = '" + table + "'"));
  std::fstream stream(world.files.root() / database,
                      std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp((number - 1) * size);
  stream << std::string(size, '\xaa');
}

bool isQuarantined(const World& world) {
  return rowOf(world, "SELECT COUNT(*) FROM quarantine") == "1";
}

void quarantineADevice(const World& world) {
  state::Database(world.files.root() / "var/lib/vfpass", state::Database::Open::createIfMissing,
                  std::chrono::seconds(2))
      .quarantine(
          {*parsePciAddress("0000:99:00.1"), "its reset failed: a reason", "2026-11-28T12:00:00Z"});
}

constexpr const char* tables[] = {"leases",    "generation",   "operations",  "steps",
                                  "soft_roce", "ended_leases", "device_uses", "quarantine"};

// The first page of a table, while vm1 has a lease, that of vm2 has ended, and a device is in
// quarantine.
template <std::size_t number>
void damagedTable(Case& test) {
  const std::string table = tables[number];
  setUpVms(test.world, 3);
  test.expectSuccess(test.run({"attach", "vm1"}));
  test.expectSuccess(test.run({"attach", "vm2"}));
  test.expectSuccess(test.run({"detach", "vm2"}));
  quarantineADevice(test.world);
  overwriteTable(test.world, table);
  const Result found = test.run({"recover"});
  test.expectSuccess(found);
  test.expect(found.output.find("vfpass.db.corrupt-1") != std::string::npos,
              "the damaged database is set aside");
  const bool isLost = table == "quarantine";
  const bool isSaid =
      found.output.find("not every device in quarantine could be read") != std::string::npos;
  test.expect(isQuarantined(test.world) != isLost, "the quarantine is kept if it can be read");
  test.expect(isSaid == isLost, "a lost quarantine is said");
  test.expectSuccess(test.run({"recover"}));
  test.expectConsistent();
  expectWorkingVm(test, "vm1");
  expectWorkingVm(test, "vm2");
}

// A table that no recovery needs: the interrupted attach is rolled back all the same.
void damagedHistoryDuringAttach(Case& test) {
  setUpVms(test.world, 1);
  const std::string before = test.state();
  test.run({"attach", "vm0"}, killBeforeDefine());
  overwriteTable(test.world, "device_uses");
  const Result found = test.run({"recover"});
  test.expectSuccess(found);
  test.expect(found.output.find("vfpass.db.corrupt-1") != std::string::npos,
              "the damaged database is set aside");
  test.expectState({before});
  expectWorkingVm(test, "vm0");
}

void damagedHeader(Case& test) {
  setUpVms(test.world, 1);
  test.run({"attach", "vm0"});
  const std::string before = test.state();
  test.world.files.write(database, std::string(8192, 'x'));
  test.run({"recover"});
  test.expectSuccess(test.run({"recover"}));
  test.expectState({before});
}

// The database disappears while an attach is interrupted before its definition. The original values
// are only there. The next attach must not take ours for them, and says so.
void deletedDuringAttach(Case& test) {
  setUpVms(test.world, 1);
  test.run({"attach", "vm0"}, killBeforeDefine());
  test.world.files.remove("var/lib/vfpass");
  test.run({"recover"});
  test.run({"gc"});
  const Result again = test.run({"attach", "vm0"});
  test.expectSuccess(again);
  test.expect(again.output.find("whose record was lost") != std::string::npos, "a warning");
  test.expectSuccess(test.run({"detach", "vm0"}));
  test.expectConsistent();
  test.expect(test.state().find("VF 0000:01:00.1 mlx5_core (null) 00:00:00:00:00:00 none") !=
                  std::string::npos,
              "neutral values and the host's driver");
}

// The database is lost while the guest runs: its stop resets the device as usual.
void lostWhileRunning(Case& test) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  World undisturbed = test.copy();
  undisturbed.stop("vm0");
  const std::string expected = fingerprint(undisturbed);
  test.world.files.remove("var/lib/vfpass");
  test.expectSuccess(test.stop("vm0"));
  test.expect(leasesIn(test.world).size() == 1, "the lease is rebuilt");
  test.expectState({expected});
  const std::string reset = "SELECT device_use LIKE '%\"methods\"%' FROM device_uses";
  test.expect(rowOf(undisturbed, reset) == "1" && rowOf(test.world, reset) == "1",
              "the device was reset");
  expectWorkingVm(test, "vm0");
}

// The database is lost, and a recover that rebuilds both leases of vm0 from its XML does not end.
// Half of them would keep vm0 from starting. The hook rebuilds them, too.
void interruptedAdoption(Case& test) {
  setUpVms(test.world, 1);
  writeMapping(test.world, "vm0", "vfs:\n" + vfEntry("rail0", "") + vfEntry("rail1", ""));
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.world.files.remove("var/lib/vfpass");
  const Fault kill{FaultMode::kill, std::nullopt, 0, 0, 0};
  const Fault fullDisk{FaultMode::errorFrom, ChangeClass::file, ENOSPC, 0, 0};
  for (Fault fault : {kill, fullDisk}) {
    bool fired = true;
    for (fault.at = 1; fired; ++fault.at) {
      World copy = test.copy();
      const Result recover = copy.vfpass({"recover"}, fault);
      fired = recover.fired;
      test.expect(leasesIn(copy).size() != 1, "both leases or none after: " + recover.faulted);
      const Result started = copy.start("vm0");
      test.expect(started.code == 0 && leasesIn(copy).size() == 2,
                  "vm0 starts after: " + recover.faulted + '\n' + started.output);
    }
  }
}

// Reports of verify are named after the time, which can go back.
void clockSetBack(Case& test) {
  const std::filesystem::path directory = test.world.files.root() / "tmp";
  const Uuid domain = domainUuid(1);
  for (int hour = 0; hour < 10; ++hour) {
    state::keepReport(directory, domain, "2026-11-25T0" + std::to_string(hour) + ":00:00Z",
                      "{\"old\": true}");
  }
  const std::string newest = "{\"newest\": true}";
  state::keepReport(directory, domain, "2020-01-01T00:00:00Z", newest);
  test.expect(state::latestReport(directory, domain)->text == newest,
              "the report that was written last is the latest");
}

}  // namespace

std::vector<NamedCase> databaseCases() {
  return {{"damaged-record", damagedRecord},
          {"unknown-word", unknownWord},
          {"damaged-pages", damagedPages},
          {"damaged-header", damagedHeader},
          {"damaged-history-during-attach", damagedHistoryDuringAttach},
          {"damaged-leases", damagedTable<0>},
          {"damaged-generation", damagedTable<1>},
          {"damaged-operations", damagedTable<2>},
          {"damaged-steps", damagedTable<3>},
          {"damaged-soft-roce", damagedTable<4>},
          {"damaged-ended-leases", damagedTable<5>},
          {"damaged-device-uses", damagedTable<6>},
          {"damaged-quarantine", damagedTable<7>},
          {"deleted-during-attach", deletedDuringAttach},
          {"lost-while-running", lostWhileRunning},
          {"interrupted-adoption", interruptedAdoption},
          {"clock-set-back", clockSetBack}};
}

}  // namespace vfpass::crash
