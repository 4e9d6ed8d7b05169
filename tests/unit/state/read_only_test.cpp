#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <map>

#include "child.hpp"
#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "sqlite_connection.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::state {
namespace {

using std::chrono::milliseconds;

/// Names and sizes of all files; reading must not change them.
std::map<std::string, std::uintmax_t> contentOf(const std::filesystem::path& folder) {
  std::map<std::string, std::uintmax_t> content;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    content[entry.path().filename()] = entry.file_size();
  }
  return content;
}

class ReadOnlyTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "state %?#"; }
  [[nodiscard]] Database writer() const {
    return {folder(), Database::Open::createIfMissing, milliseconds(2000)};
  }
  [[nodiscard]] Database reader() const {
    return {folder(), Database::Open::readOnly, milliseconds(2000)};
  }
  /// Runs a writer that is killed by SIGKILL and leaves WAL and index behind.
  void leaveWalBehind() const {
    Child child([&](const Child::Say& say) {
      Database database = writer();
      database.recordLease(sampleLease(1, "rail0", 1));
      database.beginOperation(samplePlan(1), "boot-a");
      say("written");
      ::pause();
    });
    ASSERT_EQ(child.hear(), "written");
  }
  void expectLeftovers(const Database& database) const {
    const auto before = contentOf(folder());
    EXPECT_EQ(database.leases(), std::vector<Lease>{sampleLease(1, "rail0", 1)});
    EXPECT_EQ(database.openOperations().size(), 1U);
    EXPECT_EQ(contentOf(folder()), before);
  }

  fake::TemporaryFolder temporary_;
};

TEST_F(ReadOnlyTest, ReadsMissingDatabaseAsEmptyWithoutCreatingIt) {
  EXPECT_TRUE(reader().leases().empty());
  EXPECT_FALSE(std::filesystem::exists(folder()));
  std::filesystem::create_directory(folder());
  EXPECT_TRUE(reader().openOperations().empty());
  EXPECT_TRUE(reader().leasesOf(uuidOf(1)).empty());
  EXPECT_TRUE(contentOf(folder()).empty());
}

TEST_F(ReadOnlyTest, ReadsClosedDatabaseWithoutChangingIt) {
  writer().recordLease(sampleLease(1, "rail0", 1));
  const auto before = contentOf(folder());
  EXPECT_EQ(before.size(), 2U);  // with the lock file
  EXPECT_EQ(reader().leases().size(), 1U);
  EXPECT_EQ(contentOf(folder()), before);
}

// Without the locks of SQLite, half of a row can be old.
TEST_F(ReadOnlyTest, ReadsAgainIfTheFileWasWrittenDuringARecord) {
  writer().recordLease(sampleLease(1, "rail0", 1));
  const auto file = folder() / "vfpass.db";
  const auto old = std::filesystem::last_write_time(file) - std::chrono::hours(1);
  int calls = 0;
  withReadOnlyDatabase(databaseIn(folder()), milliseconds(2000), [&](SQLite::Database&) {
    if (++calls == 1) {
      std::filesystem::last_write_time(file, old);
      throw CorruptDatabase("damaged record");
    }
  });
  EXPECT_EQ(calls, 2);
  const auto fail = [&](SQLite::Database&) {
    ++calls;
    throw CorruptDatabase("damaged record");
  };
  EXPECT_THROW(withReadOnlyDatabase(databaseIn(folder()), milliseconds(2000), fail),
               CorruptDatabase);
  EXPECT_EQ(calls, 3);
}

TEST_F(ReadOnlyTest, ReadsCommitsOfALiveWriter) {
  Database live = writer();
  const Database database = reader();
  for (std::uint8_t number = 1; number <= 20; ++number) {
    live.recordLease(sampleLease(number, "rail0", number));
    ASSERT_EQ(database.leases().size(), number);
  }
  EXPECT_EQ(live.leases().size(), 20U);
}

TEST_F(ReadOnlyTest, ReadsTheWalOfAKilledWriter) {
  leaveWalBehind();
  EXPECT_EQ(contentOf(folder()).size(), 4U);  // with the lock file
  expectLeftovers(reader());
}

// A writer that was killed in its first commit has written the header of the WAL and no frame.
TEST_F(ReadOnlyTest, ReadsWalWithoutFrames) {
  leaveWalBehind();
  const auto wal = folder() / "vfpass.db-wal";
  {
    SQLite::Database database((folder() / "vfpass.db").string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA wal_checkpoint(FULL)");
    std::filesystem::copy_file(wal, folder() / "kept");
  }
  std::filesystem::rename(folder() / "kept", wal);
  std::filesystem::resize_file(wal, 32);
  std::ofstream(folder() / "vfpass.db-shm") << std::string(32768, '\0');
  const auto start = std::chrono::steady_clock::now();
  expectLeftovers(reader());
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(2000));
}

TEST_F(ReadOnlyTest, ReadsWalWithoutIndex) {
  leaveWalBehind();
  std::filesystem::remove(folder() / "vfpass.db-shm");
  expectLeftovers(reader());
}

TEST_F(ReadOnlyTest, ReadsInAReadOnlyDirectory) {
  leaveWalBehind();
  ::chmod(folder().c_str(), 0500);
  expectLeftovers(reader());
  Child plainUser([&](const Child::Say& say) {
    // Root can write everywhere: change the owner of the files and drop root.
    if (::geteuid() == 0) {
      std::filesystem::permissions(temporary_.path(), std::filesystem::perms(0711));
      bool ready = ::chown(folder().c_str(), 65534, 65534) == 0;
      for (const auto& entry : std::filesystem::directory_iterator(folder())) {
        ready = ready && ::chown(entry.path().c_str(), 65534, 65534) == 0;
      }
      if (!ready || ::setgid(65534) != 0 || ::setuid(65534) != 0) {
        throw std::runtime_error("cannot drop root");
      }
    }
    say(std::to_string(reader().leases().size()));
  });
  EXPECT_EQ(plainUser.hear(), "1");
  ::chmod(folder().c_str(), 0700);
}

TEST_F(ReadOnlyTest, NeverWrites) {
  static_cast<void>(writer());
  Database database = reader();
  EXPECT_THROW(database.recordLease(sampleLease(1, "rail0", 1)), Error);
  EXPECT_THROW(database.nextGeneration(), Error);
  EXPECT_THROW(database.beginOperation(samplePlan(1), "boot-a"), Error);
}

TEST_F(ReadOnlyTest, ReadsEmptyFileAsEmpty) {
  std::filesystem::create_directory(folder());
  SQLite::Database((folder() / "vfpass.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  EXPECT_TRUE(reader().leases().empty());
  SQLite::Database((folder() / "vfpass.db").string(), SQLite::OPEN_READWRITE)
      .exec("CREATE TABLE something (x); PRAGMA user_version = 0");
  EXPECT_TRUE(reader().leases().empty());
}

TEST_F(ReadOnlyTest, ReadsWhileWritersOpenAndClose) {
  Child busy([&](const Child::Say& say) {
    for (unsigned round = 0; round < 60; ++round) {
      Database database = writer();  // closing moves the WAL into the file and removes it
      Lease lease = sampleLease(1, "rail0", 1);
      lease.generation = round + 1;
      database.recordLease(lease);
      if (round == 0) {
        say("going");
      }
    }
    say("finished");
  });
  ASSERT_EQ(busy.hear(), "going");
  std::uint64_t last = 0;
  while (last < 60) {
    const auto leases = reader().leases();
    ASSERT_EQ(leases.size(), 1U);
    ASSERT_GE(leases[0].generation, last);
    last = leases[0].generation;
  }
  EXPECT_EQ(busy.hear(), "finished");
}

// A writer has opened the database but not yet created the index of the WAL, which a reader may not
// create.
TEST_F(ReadOnlyTest, WaitsForAnOpeningWriter) {
  Child opening([&](const Child::Say& say) {
    Database database = writer();
    database.recordLease(sampleLease(1, "rail0", 1));
    say("written");
    ::pause();
  });
  ASSERT_EQ(opening.hear(), "written");
  constexpr std::size_t indexHeaders = 96;
  std::fstream(folder() / "vfpass.db-shm", std::ios::in | std::ios::out | std::ios::binary)
      << std::string(indexHeaders, '\0');
  const auto start = std::chrono::steady_clock::now();
  try {
    static_cast<void>(Database(folder(), Database::Open::readOnly, milliseconds(200)).leases());
    FAIL() << "there is no index";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("is locked by another process"));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(200));
  opening.kill();
  opening.wait();
  EXPECT_EQ(reader().leases().size(), 1U);
}

TEST_F(ReadOnlyTest, RetriesUntilTheTimeoutWhileTheFileChanges) {
  writer().recordLease(sampleLease(1, "rail0", 1));
  const Location location = databaseIn(folder());
  int readings = 0;
  withReadOnlyDatabase(location, milliseconds(2000), [&](const SQLite::Database&) {
    if (++readings <= 20) {
      std::filesystem::last_write_time(location.file,
                                       std::filesystem::file_time_type::clock::now());
    }
  });
  EXPECT_GT(readings, 20);
}

}  // namespace
}  // namespace vfpass::state
