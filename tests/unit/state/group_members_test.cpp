#include <SQLiteCpp/Database.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "child.hpp"
#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "system_call_faults.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::state {
namespace {

using std::chrono::milliseconds;

constexpr gid_t group = 65534;
constexpr uid_t memberId = 65533;

bool isRoot() { return ::geteuid() == 0; }

void becomeMember() {
  if (isRoot() &&
      (::setgroups(0, nullptr) != 0 || ::setgid(group) != 0 || ::setuid(memberId) != 0)) {
    throw std::runtime_error("cannot drop root");
  }
}

/// What a test that does not run as root counts as accessible to the group.
bool groupMayRead(const std::filesystem::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IRGRP) != 0;
}

/// Opens a file or directory as a member and locks it in every way that reading permits. Keeps the
/// descriptor open; returns whether there is a lock.
bool lock(const std::filesystem::path& path) {
  if (!isRoot() && ::geteuid() != memberId && !groupMayRead(path)) {
    return false;
  }
  const int opened = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) {
    return false;
  }
  struct flock whole = {};
  whole.l_type = F_RDLCK;
  const bool byRange = ::fcntl(opened, F_SETLK, &whole) == 0;
  const bool byFile = ::flock(opened, LOCK_EX | LOCK_NB) == 0;
  return byRange || byFile;
}

/// The directories as a package creates them.
class GroupMembersTest : public testing::Test {
 protected:
  GroupMembersTest() {
    ::chmod(temporary_.path().c_str(), 0711);
    for (const auto& [folder, mode] : {std::pair(state(), 02750U), std::pair(run(), 0750U)}) {
      std::filesystem::create_directory(folder);
      if (isRoot()) {
        EXPECT_EQ(::chown(folder.c_str(), 0, group), 0);
      }
      EXPECT_EQ(::chmod(folder.c_str(), mode), 0);
    }
  }

  [[nodiscard]] std::filesystem::path state() const { return temporary_.path() / "state"; }
  [[nodiscard]] std::filesystem::path run() const { return temporary_.path() / "run"; }
  [[nodiscard]] std::filesystem::path file() const { return state() / "vfpass.db"; }
  [[nodiscard]] std::filesystem::path copy() const { return state() / "vfpass-readable.db"; }
  [[nodiscard]] Database open() const {
    return {state(), Database::Open::createIfMissing, milliseconds(1000)};
  }
  [[nodiscard]] Database reader() const {
    return {state(), Database::Open::readOnly, milliseconds(1000)};
  }

  /// A member who holds locks on everything that they can open.
  [[nodiscard]] std::unique_ptr<Child> locker() const {
    return std::make_unique<Child>([this](const Child::Say& say) {
      becomeMember();
      std::string names;
      for (const auto& folder : {state(), run()}) {
        names += lock(folder) ? folder.filename().string() + " " : "";
        std::filesystem::recursive_directory_iterator entry(
            folder, std::filesystem::directory_options::skip_permission_denied);
        for (; entry != std::filesystem::recursive_directory_iterator(); ++entry) {
          const bool locked = lock(entry->path());
          names += locked ? entry->path().filename().string() + " " : "";
          if (!locked) {
            entry.disable_recursion_pending();
          }
        }
      }
      say(names);
      ::pause();
    });
  }

  /// What the commands and the hook of root do with the two directories.
  void work(std::uint8_t number) const {
    const auto locks = lockPfs(run(), {PciAddress{0, 0x3b, 0, 0}}, milliseconds(0));
    Database database = open();
    const auto operation = database.beginOperation(samplePlan(number), "boot-a");
    const auto writer = FileLock::acquire(writerLockFile(run(), operation), milliseconds(0));
    database.recordLease(sampleLease(number, "rail0", number));
    database.markSteps(operation, 0, 1, StepStatus::done);
    database.finishOperation(operation);
    keepReport(state(), uuidOf(number), "2026-01-01T00-00-00Z", "{}");
    markStarted(run(), uuidOf(number));
    ASSERT_EQ(database.leases().size(), number);
    ASSERT_EQ(reader().leases().size(), number);
  }

  /// The number of leases that a member reads, or the error.
  [[nodiscard]] std::string memberReads() const {
    Child child([this](const Child::Say& say) {
      becomeMember();
      if (::geteuid() != memberId) {  // the owner of the files plays the member
        ::chmod(file().c_str(), 0);
      }
      say(std::to_string(reader().leases().size()));
    });
    const std::string said = child.hear();
    child.wait();
    ::chmod(file().c_str(), 0600);
    return said;
  }

  fake::TemporaryFolder temporary_;
};

TEST_F(GroupMembersTest, CannotLockWhatANewDatabaseNeeds) {
  const auto locks = locker();
  EXPECT_EQ(locks->hear(), "state run ");
  work(1);
}

TEST_F(GroupMembersTest, CannotLockWhatAnExistingDatabaseNeeds) {
  work(1);
  const auto locks = locker();
  EXPECT_EQ(locks->hear(), "state vfpass-readable.db run ");
  work(2);
}

TEST_F(GroupMembersTest, CannotLockWhatALiveWriterNeeds) {
  Database live = open();
  live.recordLease(sampleLease(1, "rail0", 1));
  const auto locks = locker();
  EXPECT_EQ(locks->hear(), "state vfpass-readable.db run ");
  live.recordLease(sampleLease(2, "rail0", 2));
  work(3);
}

TEST_F(GroupMembersTest, CannotKeepADamagedDatabaseInPlace) {
  std::ofstream(file()) << std::string(5000, 'x');
  ::chmod(file().c_str(), 0600);
  const auto locks = locker();
  EXPECT_EQ(locks->hear(), "state run ");
  EXPECT_THROW(static_cast<void>(open()), CorruptDatabase);
  setAsideCorruptDatabase(state());
  work(1);
}

TEST_F(GroupMembersTest, LoseAccessToTheFilesOfEarlierVersions) {
  work(1);
  const Database live = open();
  const auto lockFile = run() / "pf-0000:3b:00.0.lock";
  for (const auto* suffix : {"", "-wal", "-shm"}) {
    ASSERT_EQ(::chmod((file().string() + suffix).c_str(), 0640), 0) << suffix;
  }
  ASSERT_EQ(::chmod(lockFile.c_str(), 0644), 0);
  static_cast<void>(open());
  static_cast<void>(FileLock::acquire(lockFile, milliseconds(0)));
  const auto locks = locker();
  EXPECT_EQ(locks->hear(), "state vfpass-readable.db run ");
  work(2);
}

TEST_F(GroupMembersTest, ReadEveryCommit) {
  Database database = open();
  EXPECT_EQ(memberReads(), "0");
  database.recordLease(sampleLease(1, "rail0", 1));
  EXPECT_EQ(memberReads(), "1");
  database.together([&] {
    database.recordLease(sampleLease(2, "rail0", 2));
    database.recordLease(sampleLease(3, "rail0", 3));
  });
  EXPECT_EQ(memberReads(), "3");
  database.dropLease(sampleLease(1, "rail0", 1).domain, "rail0", 100);
  struct stat status = {};
  ASSERT_EQ(::stat(copy().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
  EXPECT_EQ(status.st_gid, isRoot() ? group : ::getegid());
}

TEST_F(GroupMembersTest, ReadTheLastOfConcurrentCommits) {
  constexpr std::uint8_t writers = 8;
  std::vector<std::unique_ptr<Child>> children;
  for (std::uint8_t number = 1; number <= writers; ++number) {
    children.push_back(std::make_unique<Child>([&, number](const Child::Say& say) {
      Database(state(), Database::Open::createIfMissing, milliseconds(20000))
          .recordLease(sampleLease(number, "rail0", number));
      say("recorded");
    }));
  }
  for (const auto& child : children) {
    EXPECT_EQ(child->hear(), "recorded");
    child->wait();
  }
  EXPECT_EQ(memberReads(), std::to_string(writers));
}

TEST_F(GroupMembersTest, ReadACommitWhoseWriterWasKilledAfterTheNextOpen) {
  open().recordLease(sampleLease(1, "rail0", 1));
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec("DELETE FROM leases");
  EXPECT_EQ(memberReads(), "1");
  static_cast<void>(open());
  EXPECT_EQ(memberReads(), "0");
}

TEST_F(GroupMembersTest, NeverReadAnOldCopyIfTheNewOneCannotBeWritten) {
  Database database = open();
  {
    const SystemCallFaults faults(
        [](int, const void*, std::size_t, off_t) { return 0; },
        [](const std::string& path, int) { return path.ends_with(".new") ? ENOSPC : 0; });
    database.recordLease(sampleLease(1, "rail0", 1));
  }
  EXPECT_EQ(database.leases().size(), 1U);
  EXPECT_THAT(memberReads(),
              testing::AllOf(testing::HasSubstr("vfpass.db: Permission denied"),
                             testing::HasSubstr("no copy"), testing::HasSubstr("run as root")));
  database.recordLease(sampleLease(2, "rail0", 2));
  EXPECT_EQ(memberReads(), "2");
}

TEST_F(GroupMembersTest, AreToldThatACopyIsDamaged) {
  open().recordLease(sampleLease(1, "rail0", 1));
  std::ofstream(copy(), std::ios::trunc) << "";
  EXPECT_THAT(memberReads(), testing::HasSubstr("vfpass-readable.db is damaged"));
  std::ofstream(copy(), std::ios::trunc) << std::string(5000, 'x');
  EXPECT_THAT(memberReads(), testing::HasSubstr("vfpass-readable.db is damaged"));
}

TEST_F(GroupMembersTest, HaveNoCopyInAPrivateDirectory) {
  ::chmod(state().c_str(), 0700);
  open().recordLease(sampleLease(1, "rail0", 1));
  EXPECT_FALSE(std::filesystem::exists(copy()));
}

}  // namespace
}  // namespace vfpass::state
