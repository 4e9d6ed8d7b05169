#include "vfpass/state/retention.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::state {
namespace {

using namespace std::chrono_literals;

class RetentionTest : public testing::Test {
 protected:
  void forget(const std::set<Uuid>& domains) { forgetOldRecords({state, run, domains}, database); }
  /// Ends the lease of this domain with the next generation.
  Lease end(std::uint8_t domain) {
    Lease lease = sampleLease(domain, "rail0", domain);
    lease.generation = database.nextGeneration();
    database.recordLease(lease);
    database.dropLease(lease.domain, lease.entry, lease.generation);
    return lease;
  }
  [[nodiscard]] std::filesystem::path reportsOf(const Uuid& domain) const {
    return state / "reports" / toString(domain);
  }

  fake::TemporaryFolder folder;
  std::filesystem::path state = folder.path() / "state";
  std::filesystem::path run = folder.path() / "run";
  Database database{state, Database::Open::createIfMissing, 500ms};
};

TEST_F(RetentionTest, RemembersTheNewestEndedLeasesOfLostDomainsAndAllOfOthers) {
  const Lease existing = end(1);
  const Lease older = end(2);
  const Lease newer = end(3);
  database.forgetEnded({uuidOf(1)}, 1);
  EXPECT_NE(database.adoptionFault(existing), "");
  EXPECT_EQ(database.adoptionFault(older), "");
  EXPECT_NE(database.adoptionFault(newer), "");
}

TEST_F(RetentionTest, KeepsMoreEndedLeasesThanAHostHasForYears) {
  const Lease lost = end(2);
  forget({});
  EXPECT_NE(database.adoptionFault(lost), "");
}

TEST_F(RetentionTest, DeletesOldReportsOfLostDomains) {
  for (const std::uint8_t number : std::array<std::uint8_t, 3>{1, 2, 3}) {
    keepReport(state, uuidOf(number), "2026-01-01T00:00:00Z", "{}");
  }
  const auto old = std::filesystem::file_time_type::clock::now() - reportsKeptFor - 1h;
  std::filesystem::last_write_time(reportsOf(uuidOf(1)), old);
  std::filesystem::last_write_time(reportsOf(uuidOf(2)), old);
  std::filesystem::create_directories(state / "reports" / "notes");
  std::filesystem::last_write_time(state / "reports" / "notes", old);
  forget({uuidOf(1)});
  EXPECT_TRUE(std::filesystem::exists(reportsOf(uuidOf(1)))) << "its domain exists";
  EXPECT_FALSE(std::filesystem::exists(reportsOf(uuidOf(2))));
  EXPECT_TRUE(std::filesystem::exists(reportsOf(uuidOf(3)))) << "it is new";
  EXPECT_TRUE(std::filesystem::exists(state / "reports" / "notes")) << "it is not ours";
}

TEST_F(RetentionTest, DeletesLockFilesThatNobodyHolds) {
  const auto operation = database.beginOperation(samplePlan(1), "boot");
  for (const auto& file : {domainLockFile(run, uuidOf(1)), domainLockFile(run, uuidOf(2)),
                           writerLockFile(run, operation), writerLockFile(run, operation + 1)}) {
    FileLock::acquire(file, 500ms);
  }
  const auto held = FileLock::acquire(domainLockFile(run, uuidOf(3)), 500ms);
  std::ofstream(run / "domain-x.lock") << "somebody else's";
  forget({uuidOf(1)});
  EXPECT_TRUE(std::filesystem::exists(domainLockFile(run, uuidOf(1)))) << "its domain exists";
  EXPECT_FALSE(std::filesystem::exists(domainLockFile(run, uuidOf(2))));
  EXPECT_TRUE(std::filesystem::exists(domainLockFile(run, uuidOf(3)))) << "it is held";
  EXPECT_TRUE(std::filesystem::exists(writerLockFile(run, operation))) << "it is open";
  EXPECT_FALSE(std::filesystem::exists(writerLockFile(run, operation + 1)));
  EXPECT_TRUE(std::filesystem::exists(run / "domain-x.lock"));
}

}  // namespace
}  // namespace vfpass::state
