#include <SQLiteCpp/Database.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "child.hpp"
#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "sqlite_connection.hpp"
#include "system_call_faults.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

SystemCallFaults::OnWrite allWritesPass() {
  return [](int, const void*, std::size_t, off_t) { return 0; };
}
SystemCallFaults::OnOpen allOpensPass() {
  return [](const std::string&, int) { return 0; };
}

class TroubleTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "state"; }
  [[nodiscard]] std::filesystem::path file() const { return folder() / "vfpass.db"; }
  [[nodiscard]] Database open() const {
    return {folder(), Database::Open::createIfMissing, milliseconds(100)};
  }
  [[nodiscard]] Database reader() const {
    return {folder(), Database::Open::readOnly, milliseconds(100)};
  }
  /// Writes what an attach writes, starting without a directory. Returns the number of completed
  /// calls.
  static int attach(const std::filesystem::path& folder, const Child::Say& say) {
    Database database(folder, Database::Open::createIfMissing, milliseconds(100));
    say("opened");
    database.recordLease(sampleLease(1, "rail0", 1));
    say("recorded");
    const auto operation = database.beginOperation(samplePlan(1), "boot-a");
    say("begun");
    database.markSteps(operation, 0, 3, StepStatus::done);
    say("marked");
    return 4;
  }
  /// Expects that each call took effect completely or not at all.
  static void expectConsistent(const std::filesystem::path& folder, std::size_t atLeast) {
    Database database(folder, Database::Open::createIfMissing, milliseconds(100));
    const auto leases = database.leases();
    const auto operations = database.openOperations();
    ASSERT_GE(leases.size(), atLeast >= 2 ? 1U : 0U);
    ASSERT_GE(operations.size(), atLeast >= 3 ? 1U : 0U);
    ASSERT_LE(operations.size(), leases.size());
    if (!operations.empty()) {
      ASSERT_EQ(operations[0].steps.size(), samplePlan(1).steps.size());
      ASSERT_EQ(operations[0].steps[0].status, operations[0].steps[2].status);
      ASSERT_EQ(operations[0].steps[4].status, StepStatus::planned);
      if (atLeast >= 4) {
        ASSERT_EQ(operations[0].steps[0].status, StepStatus::done);
      }
    }
    ASSERT_GT(database.nextGeneration(), leases.size());
  }

  fake::TemporaryFolder temporary_;
};

TEST_F(TroubleTest, DiskFullAtAnyWriteIsReportedAndLosesNothing) {
  int refusedRuns = 0;
  for (int room = 0; room < 500; ++room) {
    const auto target = temporary_.path() / std::to_string(room);
    std::size_t finished = 0;
    int left = room;
    try {
      const SystemCallFaults faults(
          [&](int, const void*, std::size_t, off_t) { return left-- > 0 ? 0 : ENOSPC; },
          allOpensPass());
      attach(target, [&](const std::string&) { ++finished; });
    } catch (const Error& error) {
      ++refusedRuns;
      ASSERT_THAT(error.what(), HasSubstr("No space left on device")) << room;
      ASSERT_THAT(error.what(), HasSubstr("vfpass.db")) << room;
      ASSERT_THAT(error.remedy(), HasSubstr("make room in the file system of")) << room;
      ASSERT_THAT(error.remedy(), HasSubstr(target.string())) << room;
      ASSERT_EQ(error.code(), ExitCode::failed);
    }
    expectConsistent(target, finished);
    if (finished == 4) {
      break;
    }
  }
  EXPECT_GT(refusedRuns, 10);
}

TEST_F(TroubleTest, ReportsDiskFullForWalAndIndex) {
  for (const std::string suffix : {"-wal", "-shm"}) {
    const SystemCallFaults faults(allWritesPass(), [&](const std::string& path, int) {
      return path.ends_with(suffix) ? ENOSPC : 0;
    });
    const Error error = errorOf([&] { return open(); });
    EXPECT_THAT(error.what(), HasSubstr("No space left on device")) << suffix;
    EXPECT_THAT(error.remedy(), HasSubstr("make room")) << suffix;
  }
  EXPECT_TRUE(open().leases().empty());
}

TEST_F(TroubleTest, ReportsFileSizeLimit) {
  Child child([&](const Child::Say& say) {
    Database database = open();
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{128 * 1024, 128 * 1024};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
      throw std::runtime_error("setrlimit failed");
    }
    for (std::uint8_t number = 0; number < 100; ++number) {
      database.recordLease(sampleLease(number, "rail0", number));
    }
    say("no failure");
  });
  const std::string line = child.hear();
  EXPECT_THAT(line, HasSubstr("File too large (EFBIG)"));
  EXPECT_THAT(line, HasSubstr("make room"));
  child.wait();
  const std::size_t kept = open().leases().size();
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, 100U);
}

TEST_F(TroubleTest, KillAtAnyWriteKeepsCallsAtomic) {
  bool survived = false;
  for (int writes = 0; !survived; ++writes) {
    ASSERT_LT(writes, 500);
    const auto target = temporary_.path() / std::to_string(writes);
    Child child([&](const Child::Say& say) {
      int left = writes;
      const SystemCallFaults faults(
          [&](int descriptor, const void* data, std::size_t size, off_t offset) {
            if (left-- > 0) {
              return 0;
            }
            // Half of the data is written, as in a power loss.
            static_cast<void>(offset < 0 ? !::write(descriptor, data, size / 2)
                                         : !::pwrite(descriptor, data, size / 2, offset));
            ::raise(SIGKILL);
            return EIO;
          },
          allOpensPass());
      attach(target, say);
    });
    std::size_t finished = 0;
    while (!child.hear().empty()) {
      ++finished;
    }
    survived = WIFEXITED(child.wait());
    expectConsistent(target, finished);
  }
}

TEST_F(TroubleTest, KeepsOperationsOfAKilledWriter) {
  for (int count = 1; count <= 4; ++count) {
    Child child([&](const Child::Say& say) {
      Database database = open();
      for (int done = 0; done < count; ++done) {
        const auto operation = database.beginOperation(samplePlan(1), "boot-a");
        database.markSteps(operation, 0, 1, StepStatus::started);
      }
      say("begun");
      ::pause();
    });
    ASSERT_EQ(child.hear(), "begun");
    child.kill();
    EXPECT_TRUE(WIFSIGNALED(child.wait()));
    Database database = open();
    const auto operations = database.openOperations();
    ASSERT_EQ(operations.size(), static_cast<std::size_t>(count));
    for (const Operation& operation : operations) {
      EXPECT_EQ(operation.steps[0].status, StepStatus::started);
      EXPECT_EQ(operation.steps[1].status, StepStatus::planned);
      database.finishOperation(operation.id);
    }
  }
}

TEST_F(TroubleTest, ReportsLockedDatabaseAfterTheTimeout) {
  Database database = open();
  SQLite::Database other(file().string(), SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  const Error error = errorOf([&] { return database.nextGeneration(); });
  EXPECT_THAT(error.what(), HasSubstr("locked by another process; waited 100 ms"));
  EXPECT_THAT(error.remedy(), HasSubstr("fuser -v"));
  EXPECT_TRUE(database.leases().empty());  // reading needs no write lock
  other.exec("COMMIT");
  EXPECT_EQ(database.nextGeneration(), 1U);
}

TEST_F(TroubleTest, LeavesNoTransactionOpen) {
  Database database = open();
  const auto operation = database.beginOperation(samplePlan(1), "boot-a");
  EXPECT_THROW(database.markSteps(operation, 0, 99, StepStatus::done), Error);
  database.recordLease(sampleLease(1, "rail0", 1));
  EXPECT_THROW(database.recordLease(sampleLease(2, "rail0", 1)), Error);
  // Another connection can take the write lock at once.
  SQLite::Database other(file().string(), SQLite::OPEN_READWRITE);
  EXPECT_NO_THROW(other.exec("BEGIN IMMEDIATE"));
}

TEST_F(TroubleTest, ReportsMissingPermission) {
  static_cast<void>(open());
  const bool isRoot = ::geteuid() == 0;
  Child child([&](const Child::Say& say) {
    std::filesystem::permissions(temporary_.path(), std::filesystem::perms(0711));
    if (isRoot && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
      throw std::runtime_error("cannot drop root");
    }
    if (!isRoot) {
      std::filesystem::permissions(folder(), std::filesystem::perms::none);
    }
    const Error writing = errorOf([&] { return open(); });
    say(std::string(writing.what()) + " | " + writing.remedy());
    const Error reading = errorOf([&] { return reader().leases(); });
    say(std::string(reading.what()) + " | " + reading.remedy());
  });
  for (int line = 0; line < 2; ++line) {
    const std::string said = child.hear();
    EXPECT_THAT(said, HasSubstr("Permission denied"));
    EXPECT_THAT(said, HasSubstr(file().string()));
    EXPECT_THAT(said, HasSubstr("run as root"));
  }
  child.wait();
  std::filesystem::permissions(folder(), std::filesystem::perms::owner_all);
}

TEST_F(TroubleTest, ReportsReadOnlyFileOnOpen) {
  static_cast<void>(open());
  // The kernel's error on a file system mounted read-only; SQLite then opens the file read-only.
  const SystemCallFaults faults(allWritesPass(), [&](const std::string& path, int flags) {
    return path == file() && (flags & O_ACCMODE) == O_RDWR ? EROFS : 0;
  });
  EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("the database is read-only"));
}

TEST_F(TroubleTest, EachReasonHasItsOwnRemedy) {
  const Location location{"/state", "/state/vfpass.db"};
  const auto remedyOf = [&](int code, int systemError) {
    return errorOf([&]() -> int {
             throwSqliteFailure({code, systemError, "words"}, location, milliseconds(5));
           })
        .remedy();
  };
  EXPECT_THAT(remedyOf(SQLITE_IOERR_WRITE, EDQUOT), HasSubstr("make room"));
  EXPECT_THAT(remedyOf(SQLITE_FULL, 0), HasSubstr("make room"));
  EXPECT_THAT(remedyOf(SQLITE_CANTOPEN, EROFS), HasSubstr("remount,rw"));
  EXPECT_THAT(remedyOf(SQLITE_CANTOPEN, EACCES), HasSubstr("run as root"));
  EXPECT_THAT(remedyOf(SQLITE_BUSY_RECOVERY, 0), HasSubstr("fuser"));
  EXPECT_THAT(remedyOf(SQLITE_PROTOCOL, 0), HasSubstr("fuser"));
  EXPECT_THAT(remedyOf(SQLITE_IOERR_READ, EIO), HasSubstr("dmesg"));
  EXPECT_THAT(remedyOf(SQLITE_NOTADB, 0), HasSubstr("vfpass recover"));
}

TEST_F(TroubleTest, ReportsFileInPlaceOfTheDirectory) {
  std::ofstream(folder()) << "x";
  EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("Not a directory"));
}

class DamageTest : public TroubleTest {
 protected:
  void write(const std::string& content) const {
    std::filesystem::create_directories(folder());
    std::ofstream(file(), std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::filesystem::path& path) const {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void expectCorrupt() const {
    EXPECT_THROW(static_cast<void>(open().openOperations()), CorruptDatabase);
    EXPECT_THROW(static_cast<void>(reader().openOperations()), CorruptDatabase);
    const Error error = errorOf([&] { return open().openOperations(); });
    EXPECT_THAT(error.remedy(), HasSubstr("vfpass recover"));
  }
};

TEST_F(DamageTest, ReportsFileThatIsNotADatabase) {
  write(std::string(5000, 'x'));
  expectCorrupt();
  EXPECT_THAT(errorOf([&] { return open(); }).what(), HasSubstr("file is not a database"));
}

TEST_F(DamageTest, ReportsTruncatedAndOverwrittenFilesAsCorrupt) {
  {
    Database database = open();
    for (int count = 0; count < 20; ++count) {
      database.beginOperation(samplePlan(1), "boot-a");
    }
  }
  const std::string whole = read(file());
  ASSERT_GT(whole.size(), 3 * 4096U);
  write(whole.substr(0, 2 * 4096));
  expectCorrupt();
  write(whole.substr(0, 4096) + std::string(whole.size() - 4096, '\xaa'));
  expectCorrupt();
  write(whole);
  EXPECT_EQ(open().openOperations().size(), 20U);
}

TEST_F(DamageTest, ReportsInvalidJsonAsCorrupt) {
  open().beginOperation(samplePlan(1), "boot-a");
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE steps SET action = substr(action, 2)");
  expectCorrupt();
}

class DamagedContentTest : public DamageTest, public testing::WithParamInterface<const char*> {};

TEST_P(DamagedContentTest, IsReportedAsCorruptAndSetAside) {
  open().recordLease(sampleLease(1, "rail0", 1));
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec(GetParam());
  const auto readAll = [](Database database) {
    static_cast<void>(database.leases());
    static_cast<void>(database.openOperations());
    static_cast<void>(database.softRoceRecords());
    static_cast<void>(database.lastGeneration());
  };
  EXPECT_THROW(readAll(reader()), CorruptDatabase);
  EXPECT_THROW(readAll(open()), CorruptDatabase);
  EXPECT_TRUE(std::filesystem::exists(setAsideCorruptDatabase(folder()).file));
  EXPECT_NO_THROW(readAll(open()));
}

INSTANTIATE_TEST_SUITE_P(
    , DamagedContentTest,
    testing::Values("DROP TABLE leases",
                    "DROP TABLE steps; INSERT INTO operations VALUES (1, "
                    "'attach', '11111111-2222-3333-4444-555555555555', 'a', 'b')",
                    "DROP TABLE generation", "DELETE FROM generation",
                    "UPDATE generation SET last = -1", "PRAGMA user_version = 0",
                    "INSERT INTO soft_roce VALUES ('rxe0', 'eth0', -1, 'b')",
                    "INSERT INTO soft_roce VALUES ('rxe0', 'eth0', 4294967296, 'b')"));

// SQLite quotes the name of a table whose definition is damaged.
TEST_F(DamageTest, EscapesNamesOfADamagedSchema) {
  { Database database = open(); }
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE)
      .exec(
          "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'l' || char(27) || '[31m', "
          "sql = 'CREATE' WHERE name = 'leases'");
  const Error error = errorOf([&] { return reader().leases(); });
  EXPECT_THAT(error.what(), HasSubstr("malformed database schema (l"));
  EXPECT_EQ(std::string(error.what()), printable(error.what()));
}

TEST_F(DamageTest, SettingAsideKeepsOldFilesAndAllowsNewOnes) {
  for (const std::string number : {"1", "2"}) {
    write("rubbish " + number + std::string(5000, 'x'));
    std::ofstream(file().string() + "-wal") << "old wal";
    const auto aside = setAsideCorruptDatabase(folder()).file;
    EXPECT_EQ(aside, folder() / ("vfpass.db.corrupt-" + number));
    EXPECT_THAT(read(aside), HasSubstr("rubbish " + number));
    EXPECT_EQ(read(aside.string() + "-wal"), "old wal");
    EXPECT_FALSE(std::filesystem::exists(file().string() + "-wal"));
    EXPECT_NO_THROW(reader().requireUndamaged());
  }
  open().recordLease(sampleLease(1, "rail0", 1));
  EXPECT_EQ(open().leases().size(), 1U);
}

TEST_F(DamageTest, DoesNotSetAsideHealthyOrMissingDatabase) {
  EXPECT_THAT(errorOf([&] { return setAsideCorruptDatabase(folder()); }).what(),
              HasSubstr("no such file"));
  open().recordLease(sampleLease(1, "rail0", 1));
  EXPECT_EQ(errorOf([&] { return setAsideCorruptDatabase(folder()); }).code(), ExitCode::refused);
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 9");
  EXPECT_THROW(setAsideCorruptDatabase(folder()), Error);
  EXPECT_TRUE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace vfpass::state
