#include "vfpass/apply/device_owner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "test_host.hpp"

namespace vfpass::apply {
namespace {

using std::chrono::milliseconds;

// A detach that is stopped while libvirt defines the XML.
class StartLocksTest : public testing::Test {
 protected:
  StartLocksTest()
      : database(host.folder / "state", state::Database::Open::createIfMissing, milliseconds(1000)),
        tools(host.tools(database)) {
    host.attach();
    const Plan plan = host.detachPlan();
    host.hypervisor.killBeforeDefine = true;
    EXPECT_THROW(host.execute(plan), fake::Killed);
    writer = state::writerLockFile(host.folder / "run", database.openOperations().at(0).id);
  }

  std::vector<state::FileLock> lock(milliseconds timeout) {
    return lockForStart(tools, host.uuid, {host.leases()[0].pf}, timeout);
  }

  Host host;
  state::Database database;
  Tools tools;
  std::filesystem::path writer;
};

TEST_F(StartLocksTest, RefusesWhileAnotherProcessChangesTheXml) {
  const auto living = state::FileLock::acquire(writer, milliseconds(1000));
  try {
    lock(milliseconds(50));
    FAIL() << "the detach is still open";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
    EXPECT_THAT(error.what(), testing::HasSubstr("unfinished detach of domain train0"));
  }
  EXPECT_TRUE(state::FileLock::tryAcquire(host.folder / "run" / "pf-0000:01:00.0.lock"))
      << "the other process can take the PF's lock";
}

TEST_F(StartLocksTest, ContinuesWhenTheOtherProcessEnds) {
  // The other process has its own connection; a transaction belongs to one connection.
  state::Database other(host.folder / "state", state::Database::Open::createIfMissing,
                        milliseconds(5000));
  auto living =
      std::make_unique<state::FileLock>(state::FileLock::acquire(writer, milliseconds(1000)));
  auto locks = std::async(std::launch::async, [this] { return lock(milliseconds(10000)); });
  other.finishOperation(other.openOperations().at(0).id);
  living.reset();
  EXPECT_EQ(locks.get().size(), 1U);
}

TEST_F(StartLocksTest, LeavesOperationsOfDeadProcessesToRecovery) {
  EXPECT_EQ(lock(milliseconds(0)).size(), 1U);
}

TEST_F(StartLocksTest, IgnoresOperationsOfOtherDomains) {
  const auto living = state::FileLock::acquire(writer, milliseconds(1000));
  const Uuid other = *parseUuid("0f5e9a3c-1111-4222-8333-000000000000");
  EXPECT_EQ(lockForStart(tools, other, {host.leases()[0].pf}, milliseconds(0)).size(), 1U);
}

}  // namespace
}  // namespace vfpass::apply
