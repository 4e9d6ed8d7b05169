#include "vfpass/state/database.hpp"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "child.hpp"
#include "fake/temporary_folder.hpp"
#include "samples.hpp"

namespace vfpass::state {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr unsigned otherUser = 65534;

class DatabaseTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "lib" / "state"; }
  [[nodiscard]] std::filesystem::path file() const { return folder() / "vfpass.db"; }
  [[nodiscard]] Database open() const {
    return {folder(), Database::Open::createIfMissing, milliseconds(2000)};
  }
  [[nodiscard]] Database readOnly() const {
    return {folder(), Database::Open::readOnly, milliseconds(2000)};
  }
  [[nodiscard]] std::string textOf(const std::string& sql) const {
    SQLite::Database database(file().string());
    return database.execAndGet(sql).getString();
  }

  fake::TemporaryFolder temporary_;
};

unsigned modeOf(const std::filesystem::path& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST_F(DatabaseTest, CreatesPrivateDirectoryAndFile) {
  const Database database = open();
  EXPECT_EQ(modeOf(folder()), 0700U);
  EXPECT_EQ(modeOf(file()), 0600U);
  EXPECT_EQ(modeOf(file().string() + "-wal"), 0600U);
  EXPECT_EQ(modeOf(file().string() + "-shm"), 0600U);
  EXPECT_TRUE(database.leases().empty());
  EXPECT_TRUE(database.openOperations().empty());
}

TEST_F(DatabaseTest, StoresItsSettingsInTheFile) {
  static_cast<void>(open());
  EXPECT_EQ(textOf("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(textOf("PRAGMA user_version"), "5");
}

TEST_F(DatabaseTest, LeasesAreSortedAfterReopening) {
  const std::vector<Lease> sorted = {sampleLease(1, "a", 1), sampleLease(1, "b", 0),
                                     sampleLease(2, "a", 2)};
  {
    Database database = open();
    for (const std::size_t index : {2U, 1U, 0U}) {
      database.recordLease(sorted[index]);
    }
  }
  EXPECT_EQ(open().leases(), sorted);
  EXPECT_EQ(open().leasesOf(uuidOf(1)), (std::vector<Lease>{sorted[0], sorted[1]}));
  EXPECT_TRUE(open().leasesOf(uuidOf(3)).empty());
}

TEST_F(DatabaseTest, RecordingAgainReplacesTheLease) {
  Database database = open();
  Lease lease = sampleLease(1, "rail0", 1);
  database.recordLease(lease);
  vfOf(lease).index = 5;
  lease.generation = 9;
  vfOf(lease).settings.vlan.reset();
  database.recordLease(lease);
  EXPECT_EQ(database.leases(), std::vector<Lease>{lease});
}

TEST_F(DatabaseTest, RemedyQuotesTheDomainName) {
  Database database = open();
  Lease first = sampleLease(1, "rail0", 1);
  first.domainName = "my vm";
  database.recordLease(first);
  EXPECT_THAT(errorOf([&] { database.recordLease(sampleLease(2, "rail0", 1)); }).remedy(),
              HasSubstr("vfpass detach 'my vm'"));
}

TEST_F(DatabaseTest, RefusesSecondLeaseOnTheSameVf) {
  Database database = open();
  const Lease first = sampleLease(1, "rail0", 1);
  database.recordLease(first);
  const Error error = errorOf([&] { database.recordLease(sampleLease(2, "rail0", 1)); });
  EXPECT_EQ(error.code(), ExitCode::refused);
  EXPECT_THAT(error.what(), HasSubstr("VF 1 of PF 0000:3b:00.0 is leased to domain train1"));
  EXPECT_THAT(error.remedy(), HasSubstr("vfpass detach train1"));
  EXPECT_EQ(errorOf([&] { database.recordLease(sampleLease(1, "other", 1)); }).code(),
            ExitCode::refused);
  EXPECT_EQ(database.leases(), std::vector<Lease>{first});

  Lease elsewhere = sampleLease(2, "rail0", 1);
  elsewhere.pf.function = 1;
  database.recordLease(elsewhere);
  EXPECT_EQ(database.leases().size(), 2U);
}

TEST_F(DatabaseTest, RefusesMovingALeaseToALeasedVf) {
  Database database = open();
  const std::vector<Lease> both = {sampleLease(1, "a", 1), sampleLease(1, "b", 2)};
  database.recordLease(both[0]);
  database.recordLease(both[1]);
  Lease moved = both[1];
  vfOf(moved).index = 1;
  EXPECT_EQ(errorOf([&] { database.recordLease(moved); }).code(), ExitCode::refused);
  EXPECT_EQ(database.leases(), both);
}

TEST_F(DatabaseTest, EscapesHolderNamesForTerminals) {
  Database database = open();
  Lease lease = sampleLease(1, "rail0", 1);
  lease.domainName = "evil\x1b[31m\n";
  database.recordLease(lease);
  const Error error = errorOf([&] { database.recordLease(sampleLease(2, "rail0", 1)); });
  EXPECT_EQ(std::string(error.what()).find_first_of("\x1b\n"), std::string::npos);
}

TEST_F(DatabaseTest, ChangesTogetherAreCommittedTogether) {
  Database database = open();
  database.together([&] {
    database.recordLease(sampleLease(1, "rail0", 1));
    EXPECT_EQ(database.leases().size(), 1U);
    EXPECT_TRUE(readOnly().leases().empty());
  });
  EXPECT_EQ(readOnly().leases().size(), 1U);
}

TEST_F(DatabaseTest, ChangesTogetherWithinOthersAreCommittedWithThem) {
  Database database = open();
  database.together([&] {
    database.together([&] { database.recordLease(sampleLease(1, "rail0", 1)); });
    database.recordLease(sampleLease(1, "rail1", 2));
    EXPECT_TRUE(readOnly().leases().empty());
  });
  EXPECT_EQ(readOnly().leases().size(), 2U);
}

TEST_F(DatabaseTest, ChangesTogetherAreRolledBackTogether) {
  Database database = open();
  EXPECT_THROW(database.together([&] {
    database.recordLease(sampleLease(1, "rail0", 1));
    throw Error("no");
  }),
               Error);
  EXPECT_TRUE(database.leases().empty());
  database.recordLease(sampleLease(1, "rail0", 1));  // a transaction of its own again
  EXPECT_EQ(readOnly().leases().size(), 1U);
}

TEST_F(DatabaseTest, DropRequiresTheSameGeneration) {
  Database database = open();
  Lease lease = sampleLease(1, "rail0", 1);
  lease.generation = 4;
  database.recordLease(lease);
  EXPECT_FALSE(database.dropLease(lease.domain, "rail0", 3));
  EXPECT_FALSE(database.dropLease(lease.domain, "rail1", 4));
  EXPECT_FALSE(database.dropLease(uuidOf(9), "rail0", 4));
  EXPECT_EQ(database.leases().size(), 1U);
  EXPECT_TRUE(database.dropLease(lease.domain, "rail0", 4));
  EXPECT_FALSE(database.dropLease(lease.domain, "rail0", 4));
  EXPECT_TRUE(database.leases().empty());
}

TEST_F(DatabaseTest, AdoptionRaisesTheGeneration) {
  Database database = open();
  const Lease lease = sampleLease(1, "rail0", 9);
  EXPECT_EQ(database.adoptionFault(lease), "");
  EXPECT_EQ(database.adoptLease(lease), "");
  EXPECT_EQ(database.leases(), std::vector{lease});
  EXPECT_EQ(database.lastGeneration(), lease.generation);
}

TEST_F(DatabaseTest, RefusesToAdoptEndedLease) {
  Lease lease = sampleLease(1, "rail0", 1);
  lease.generation = 4;
  {
    Database database = open();
    database.recordLease(lease);
    database.dropLease(lease.domain, "rail0", 4);
    database.dropLease(lease.domain, "rail0", 2);  // a repeated drop of an older generation
  }
  Database database = open();
  EXPECT_THAT(database.adoptLease(lease), HasSubstr("it has ended (generation 4)"));
  lease.generation = 3;
  EXPECT_THAT(database.adoptLease(lease), HasSubstr("it has ended"));
  EXPECT_TRUE(database.leases().empty());
  const Database reader(folder(), Database::Open::readOnly, milliseconds(100));
  EXPECT_THAT(reader.adoptionFault(lease), HasSubstr("it has ended"));
  Lease sibling = lease;
  sibling.entry = "rail1";
  EXPECT_EQ(database.adoptionFault(sibling), "") << "another entry";
  sibling = lease;
  sibling.domain = uuidOf(2);
  EXPECT_EQ(database.adoptionFault(sibling), "") << "another domain";
  lease.generation = 5;
  EXPECT_EQ(database.adoptLease(lease), "") << "a later attach";
}

TEST_F(DatabaseTest, RefusesToAdoptLeaseOfALeasedDevice) {
  Database database = open();
  const Lease owner = sampleLease(1, "rail0", 1);
  database.recordLease(owner);
  Lease thief = owner;
  thief.domain = uuidOf(2);
  EXPECT_THAT(database.adoptLease(thief), HasSubstr("is leased to domain"));
  thief.part = LeasedFunction{};  // the whole PF
  thief.device = thief.pf;
  EXPECT_THAT(database.adoptLease(thief), HasSubstr("is leased to domain"));
  EXPECT_EQ(database.leases(), std::vector{owner});
}

TEST_F(DatabaseTest, NeverLowersTheGeneration) {
  Database database = open();
  database.raiseGeneration(7);
  database.raiseGeneration(3);
  EXPECT_EQ(database.nextGeneration(), 8U);
}

TEST_F(DatabaseTest, StateChangeRequiresTheSameGeneration) {
  Database database = open();
  Lease lease = sampleLease(1, "rail0", 1);
  lease.generation = 4;
  database.recordLease(lease);
  EXPECT_FALSE(database.setLeaseState(lease.domain, "rail0", 5, LeaseState::running, "boot-b"));
  EXPECT_EQ(database.leases(), std::vector<Lease>{lease});
  EXPECT_TRUE(database.setLeaseState(lease.domain, "rail0", 4, LeaseState::running, "boot-b"));
  lease.state = LeaseState::running;
  lease.bootId = "boot-b";
  EXPECT_EQ(database.leases(), std::vector<Lease>{lease});
  EXPECT_EQ(textOf("SELECT state || boot_id FROM leases"), "runningboot-b");
}

// A power loss: the state is running, but nothing of that boot runs any more.
TEST_F(DatabaseTest, LeaseRunningInAnotherBootReadsAsReserved) {
  Database database = open();
  Lease before = sampleLease(1, "rail0", 1);
  before.state = LeaseState::running;
  before.bootId = "boot-a";
  before.activatedPartition = true;
  Lease now = sampleLease(1, "rail1", 2);
  now.state = LeaseState::starting;
  now.bootId = "boot-b";
  now.activatedPartition = true;
  database.recordLease(before);
  database.recordLease(now);
  database.setCurrentBoot("boot-b");
  before.state = LeaseState::reserved;
  before.activatedPartition = false;
  EXPECT_EQ(database.leases(), (std::vector<Lease>{before, now}));
  EXPECT_EQ(database.leasesOf(before.domain), (std::vector<Lease>{before, now}));
}

TEST_F(DatabaseTest, GenerationsGrowAcrossDropsAndReopening) {
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    Database database = open();
    for (int turn = 0; turn < 3; ++turn) {
      Lease lease = sampleLease(1, "rail0", 1);
      lease.generation = database.nextGeneration();
      EXPECT_GT(lease.generation, last);
      last = lease.generation;
      database.recordLease(lease);
      EXPECT_TRUE(database.dropLease(lease.domain, "rail0", lease.generation));
    }
  }
}

TEST_F(DatabaseTest, RebuiltLeaseRaisesTheGeneration) {
  Database database = open();
  Lease lease = sampleLease(1, "rail0", 1);
  lease.generation = 57;
  database.recordLease(lease);
  EXPECT_EQ(database.nextGeneration(), 58U);
  lease.generation = 3;
  database.recordLease(lease);
  EXPECT_EQ(database.nextGeneration(), 59U);
}

TEST_F(DatabaseTest, RefusesGenerationsOutOfRange) {
  Database database = open();
  Lease lease = sampleLease(1, "rail0", 1);
  lease.generation = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(errorOf([&] { database.recordLease(lease); }).what(), HasSubstr("out of range"));
  EXPECT_TRUE(database.leases().empty());
  lease.generation = std::numeric_limits<std::int64_t>::max();
  database.recordLease(lease);
  EXPECT_THAT(errorOf([&] { database.nextGeneration(); }).what(), HasSubstr("no generation"));
}

TEST_F(DatabaseTest, JournalRoundTrips) {
  Plan plan = samplePlan(1);
  plan.domainName = std::string("n\0l\xff", 4);
  std::int64_t id = 0;
  {
    Database database = open();
    id = database.beginOperation(plan, "boot-a");
    database.markSteps(id, 0, 2, StepStatus::done);
    database.markSteps(id, 2, 1, StepStatus::started);
    database.markSteps(id, 0, 1, StepStatus::undone);
  }
  const std::vector<Operation> operations = open().openOperations();
  ASSERT_EQ(operations.size(), 1U);
  EXPECT_EQ(operations[0].id, id);
  EXPECT_EQ(operations[0].kind, plan.kind);
  EXPECT_EQ(operations[0].domain, plan.domain);
  EXPECT_EQ(operations[0].domainName, plan.domainName);
  EXPECT_EQ(operations[0].bootId, "boot-a");
  ASSERT_EQ(operations[0].steps.size(), plan.steps.size());
  const StepStatus expected[] = {StepStatus::undone, StepStatus::done, StepStatus::started,
                                 StepStatus::planned, StepStatus::planned};
  for (std::size_t index = 0; index < plan.steps.size(); ++index) {
    EXPECT_EQ(operations[0].steps[index].step, plan.steps[index]);
    EXPECT_EQ(operations[0].steps[index].status, expected[index]);
  }
}

TEST_F(DatabaseTest, FinishingDeletesStepsAndNeverReusesIds) {
  Database database = open();
  const auto first = database.beginOperation(samplePlan(1), "boot-a");
  const auto second = database.beginOperation(samplePlan(2), "boot-a");
  EXPECT_EQ(database.openOperations()[0].id, first);
  database.finishOperation(second);
  EXPECT_EQ(database.openOperations().size(), 1U);
  EXPECT_EQ(textOf("SELECT count(*) FROM steps"), "5");
  EXPECT_GT(database.beginOperation(samplePlan(3), "boot-a"), second);
  database.finishOperation(second);  // a second recovery finds it missing
  EXPECT_EQ(database.openOperations().size(), 2U);
}

TEST_F(DatabaseTest, ReplacesTheActionOfAStepAlone) {
  Database database = open();
  const Plan plan = samplePlan(1);
  const auto id = database.beginOperation(plan, "boot-a");
  database.markSteps(id, 0, 2, StepStatus::done);
  const Action other = BindDriver{*parsePciAddress("0000:3b:00.1"), "vfio-pci", "vfio-pci"};
  database.replaceAction(id, 1, other);
  const std::vector<JournaledStep> steps = database.openOperations().at(0).steps;
  ASSERT_EQ(steps.size(), plan.steps.size());
  EXPECT_EQ(steps[0].step, plan.steps[0]);
  EXPECT_EQ(steps[1].step.action, other);
  EXPECT_EQ(steps[1].step.undo, plan.steps[1].undo);
  EXPECT_EQ(steps[1].status, StepStatus::done);
  EXPECT_THROW(database.replaceAction(id, plan.steps.size(), other), Error);
  EXPECT_THROW(database.replaceAction(id + 1, 0, other), Error);
}

TEST_F(DatabaseTest, MarkingMissingStepsMarksNone) {
  Database database = open();
  const auto id = database.beginOperation(samplePlan(1), "boot-a");
  EXPECT_THROW(database.markSteps(id, 3, 3, StepStatus::done), Error);
  EXPECT_THROW(database.markSteps(id + 1, 0, 1, StepStatus::done), Error);
  const std::vector<Operation> operations = database.openOperations();
  ASSERT_EQ(operations.size(), 1U);
  for (const JournaledStep& step : operations[0].steps) {
    EXPECT_EQ(step.status, StepStatus::planned);
  }
}

TEST_F(DatabaseTest, UnknownJournalValuesNameNewerVersion) {
  Database database = open();
  const auto id = database.beginOperation(samplePlan(1), "boot-a");
  for (const std::string change : {"UPDATE steps SET status = 'skipped' WHERE position = 1",
                                   "UPDATE steps SET action = '{\"do\":\"x\"}' WHERE position = 0",
                                   "UPDATE operations SET kind = 'evacuate'"}) {
    SQLite::Database(file().string(), SQLite::OPEN_READWRITE, 1000).exec(change);
    EXPECT_THAT(errorOf([&] { return database.openOperations(); }).remedy(),
                AllOf(HasSubstr("newer vfpass"),
                      HasSubstr("`vfpass recover --abandon " + std::to_string(id) + "`")));
    EXPECT_THROW(database.requireUndamaged(), UnknownOperation);
    EXPECT_EQ(database.ownerOfOperation(id)->domain, samplePlan(1).domain);
  }
  EXPECT_FALSE(database.ownerOfOperation(id + 1));
}

TEST_F(DatabaseTest, StoresSoftRoceRecords) {
  const SoftRoceRecord begun{"rxe0", "eth0", std::nullopt, "boot-a"};
  const SoftRoceRecord made{"rxe0", "eth0", 4294967295U, "boot-a"};
  const SoftRoceRecord other{"rxe1", "eth1", 0, "boot-a"};
  {
    Database database = open();
    EXPECT_TRUE(database.softRoceRecords().empty());
    database.recordSoftRoce(other);
    database.recordSoftRoce(begun);
    EXPECT_EQ(database.softRoceRecords(), (std::vector{begun, other}));
    database.recordSoftRoce(made);
  }
  Database database = open();
  EXPECT_EQ(database.softRoceRecords(), (std::vector{made, other}));
  database.forgetSoftRoce("rxe0");
  database.forgetSoftRoce("rxe0");
  EXPECT_EQ(database.softRoceRecords(), (std::vector{other}));
}

TEST_F(DatabaseTest, ReadsOnlyTheLeasesOfSomePfsAndTheOperationsOfOneDomain) {
  Database database = open();
  Lease first = sampleLease(1, "a", 1);
  Lease second = sampleLease(2, "a", 2);
  second.pf = {0, 0x77, 0, 0};
  database.recordLease(first);
  database.recordLease(second);
  EXPECT_EQ(database.leasesOn({first.pf}), (std::vector{first}));
  EXPECT_EQ(database.leasesOn({first.pf, second.pf}), (std::vector{first, second}));
  EXPECT_TRUE(database.leasesOn({PciAddress{0, 0x78, 0, 0}}).empty());
  database.beginOperation(samplePlan(1), "boot-a");
  const auto operation = database.beginOperation(samplePlan(2), "boot-a");
  const auto found = database.openOperationsOf(uuidOf(2));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, operation);
  EXPECT_EQ(found[0].steps.size(), samplePlan(2).steps.size());
  EXPECT_TRUE(database.openOperationsOf(uuidOf(3)).empty());
}

TEST_F(DatabaseTest, MigratesTheFirstFormat) {
  {
    Database database = open();
    database.recordLease(sampleLease(1, "a", 1));
  }
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE)
      .exec(
          "DROP TABLE soft_roce; DROP TABLE ended_leases; DROP TABLE device_uses; DROP TABLE "
          "quarantine; PRAGMA user_version = 1");
  const Database reader(folder(), Database::Open::readOnly, milliseconds(100));
  EXPECT_TRUE(reader.softRoceRecords().empty());
  EXPECT_EQ(reader.leases().size(), 1U);
  EXPECT_EQ(textOf("PRAGMA user_version"), "1");
  Database database = open();
  EXPECT_EQ(textOf("PRAGMA user_version"), "5");
  database.recordSoftRoce({"rxe0", "eth0", 1, "boot-a"});
  EXPECT_EQ(database.softRoceRecords().size(), 1U);
  EXPECT_EQ(database.leases(), (std::vector{sampleLease(1, "a", 1)}));
}

TEST_F(DatabaseTest, RefusesNewerFormat) {
  static_cast<void>(open());
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 6");
  EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("has format 6"));
  const Database reader(folder(), Database::Open::readOnly, milliseconds(100));
  EXPECT_THAT(errorOf([&] { return reader.leases(); }).remedy(), HasSubstr("newer vfpass"));
}

TEST_F(DatabaseTest, SupportsConcurrentCreation) {
  std::vector<std::unique_ptr<Child>> children;
  for (std::uint8_t number = 1; number <= 8; ++number) {
    children.push_back(std::make_unique<Child>([&, number](const Child::Say&) {
      Database database(folder(), Database::Open::createIfMissing, milliseconds(20000));
      Lease lease = sampleLease(number, "rail0", number);
      lease.generation = database.nextGeneration();
      database.recordLease(lease);
    }));
  }
  for (auto& child : children) {
    EXPECT_EQ(child->hear(), "");
    EXPECT_EQ(child->wait(), 0);
  }
  std::set<std::uint64_t> generations;
  for (const Lease& lease : open().leases()) {
    generations.insert(lease.generation);
  }
  EXPECT_EQ(generations.size(), 8U);
}

TEST_F(DatabaseTest, RefusesDirectoryWritableByOthers) {
  std::filesystem::create_directories(folder());
  for (const mode_t mode : {0777U, 01777U, 0702U}) {
    ::chmod(folder().c_str(), mode);
    const Error error = errorOf([&] { return open(); });
    EXPECT_THAT(error.what(), HasSubstr("writable by everyone"));
    EXPECT_EQ(error.remedy(), "chmod o-w " + folder().string());
    EXPECT_EQ(error.code(), ExitCode::badInput);
    EXPECT_THAT(errorOf([&] { return readOnly().leases(); }).what(), HasSubstr("everyone"));
  }
  ::chmod(folder().c_str(), 0770);
  if (::chown(folder().c_str(), 0, otherUser) == 0) {
    EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("writable by group ID 65534"));
    ASSERT_EQ(::chown(folder().c_str(), otherUser, 0), 0);
    EXPECT_THAT(errorOf([&] { return open(); }).remedy(), HasSubstr("chown root "));
  } else {
    EXPECT_NE(::geteuid(), 0U) << "only root can change the owner of a directory";
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(DatabaseTest, RefusesSymlinkAsDirectory) {
  std::filesystem::create_directories(folder());
  const auto link = temporary_.path() / "link";
  std::filesystem::create_directory_symlink(folder(), link);
  for (const auto& name : {link, link / ""}) {
    for (const auto mode : {Database::Open::createIfMissing, Database::Open::readOnly}) {
      EXPECT_THAT(errorOf([&] { return Database(name, mode, milliseconds(100)).leases(); }).what(),
                  HasSubstr("found a symbolic link"));
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

TEST_F(DatabaseTest, RefusesFilesWritableByOthers) {
  { open().recordLease(sampleLease(1, "rail0", 1)); }
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string name = file().string() + suffix;
    const bool added = !std::filesystem::exists(name);
    if (added) {
      std::ofstream(name).flush();
    }
    ::chmod(name.c_str(), 0666);
    EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("writable by everyone"));
    EXPECT_THAT(errorOf([&] { return readOnly().leases(); }).remedy(),
                HasSubstr("chmod o-w " + name));
    ::chmod(name.c_str(), 0600);
    if (added) {
      std::filesystem::remove(name);
    }
  }
  EXPECT_EQ(open().leases().size(), 1U);
}

TEST_F(DatabaseTest, RefusesSymlinksAsFiles) {
  const auto victim = temporary_.path() / "victim";
  std::ofstream(victim) << "mine";
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::create_directories(folder());
    std::filesystem::create_symlink(victim, file().string() + suffix);
    EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("found a symbolic link"));
    EXPECT_THAT(errorOf([&] { return readOnly().leases(); }).what(), HasSubstr("symbolic link"));
    std::filesystem::remove_all(folder());
  }
  EXPECT_EQ(std::filesystem::file_size(victim), 4U);
}

}  // namespace
}  // namespace vfpass::state
