#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>

#include "test_host.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// Throws once, at this call. A command asks once in a while whether a signal has arrived.
std::function<void()> stopAt(int call) {
  return [left = call]() mutable {
    if (--left == 0) {
      throw Cancelled(SIGINT, "stopped by SIGINT");
    }
  };
}

enum class StoppedWork { attach, attachLive, detach, detachLive };

class StopTest : public testing::TestWithParam<StoppedWork> {
 protected:
  static void prepare(Host& host) {
    if (GetParam() == StoppedWork::attachLive || GetParam() == StoppedWork::detachLive) {
      host.start();
      host.scope = {true, true};
    }
    if (isDetach()) {
      host.attach();
    }
  }
  static bool isDetach() {
    return GetParam() == StoppedWork::detach || GetParam() == StoppedWork::detachLive;
  }
  static Plan planOf(Host& host) { return isDetach() ? host.detachPlan() : host.attachPlan(); }
};

TEST_P(StopTest, AtAnyMomentEndsInTheOldOrTheNewState) {
  Host reference;
  prepare(reference);
  const Plan work = planOf(reference);
  const std::string before = reference.fingerprint();
  reference.execute(work);
  const std::string after = reference.fingerprint();
  int stops = 0;
  for (int call = 1;; ++call) {
    Host host;
    prepare(host);
    const Plan plan = planOf(host);
    host.checkpoint = stopAt(call);
    try {
      host.execute(plan);
      EXPECT_EQ(host.fingerprint(), after);
      break;  // nothing asks that often
    } catch (const Cancelled& stop) {
      EXPECT_EQ(stop.signal(), SIGINT);
      EXPECT_THAT(stop.what(), EndsWith(" of domain train0 was rolled back"));
      EXPECT_EQ(host.fingerprint(), before) << "at call " << call;
    }
    EXPECT_THAT(host.recoverAll(), IsEmpty());
    ++stops;
  }
  EXPECT_GE(stops, 2);
}

std::string stoppedWorkName(const testing::TestParamInfo<StoppedWork>& work) {
  constexpr std::array names{"Attach", "AttachLive", "Detach", "DetachLive"};
  return names[static_cast<std::size_t>(work.param)];
}

INSTANTIATE_TEST_SUITE_P(OfEachWork, StopTest,
                         testing::Values(StoppedWork::attach, StoppedWork::attachLive,
                                         StoppedWork::detach, StoppedWork::detachLive),
                         stoppedWorkName);

// Some of the steps that return a device to the host have no inverse.
TEST(Stop, IsNotAskedForAfterADetachHasRestoredADevice) {
  Host host;
  host.attach();
  const Plan plan = host.detachPlan();
  host.kernel.effects = 0;
  int asked = 0;
  host.checkpoint = [&] {
    ++asked;
    EXPECT_EQ(host.kernel.effects, 0);
  };
  host.execute(plan);
  EXPECT_GT(asked, 0);
  EXPECT_THAT(host.leases(), IsEmpty());
}

TEST(Stop, LeavesWhatItCannotRollBackToRecover) {
  Host host;
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.checkpoint = [&host, stop = stopAt(3)]() mutable {
    host.hypervisor.disconnected = true;
    stop();
  };
  try {
    host.execute(plan);
  } catch (const Cancelled&) {  // it had not changed the XML yet
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("stopped by SIGINT; rolling back failed"));
  }
  host.hypervisor.disconnected = false;
  host.checkpoint = [] {};
  host.recoverAll();
  EXPECT_EQ(host.fingerprint(), before);
}

/// An attach that a process has left open, and that cannot be recovered.
class OpenOperationTest : public testing::Test {
 protected:
  OpenOperationTest() {
    const Plan plan = host.attachPlan();
    host.hypervisor.loseReplyOfDefine = true;
    EXPECT_THROW(host.execute(plan), Error);
  }
  Recovered recovery(const std::function<void()>& checkpoint = [] {}) {
    state::Database database = open();
    Tools tools = host.tools(database);
    tools.checkpoint = checkpoint;
    return recover(tools);
  }
  [[nodiscard]] state::Database open() const {
    return {host.folder / "state", state::Database::Open::createIfMissing,
            std::chrono::milliseconds(500)};
  }
  std::int64_t number() { return open().openOperations().front().id; }

  Host host;
};

TEST_F(OpenOperationTest, IsNamedByItsNumber) {
  const auto unrecovered = recovery().unrecovered;
  ASSERT_EQ(unrecovered.size(), 1U);
  EXPECT_THAT(unrecovered[0].line,
              HasSubstr("attach of domain train0 (operation " + std::to_string(number()) + "): "));
}

TEST_F(OpenOperationTest, IsNotBegunAfterASignal) {
  host.hypervisor.disconnected = false;
  const auto recovered = recovery(stopAt(1));
  ASSERT_TRUE(recovered.stopped);
  EXPECT_EQ(recovered.stopped->signal(), SIGINT);
  EXPECT_THAT(recovered.done, IsEmpty());
  EXPECT_EQ(open().openOperations().size(), 1U);
}

TEST_F(OpenOperationTest, IsLeftToTheCommandThatWorksOnIt) {
  host.hypervisor.disconnected = false;
  const auto lock = state::FileLock::acquire(state::domainLockFile(host.folder / "run", host.uuid),
                                             std::chrono::milliseconds(500));
  const auto recovered = recovery();
  EXPECT_THAT(recovered.done, IsEmpty());
  EXPECT_THAT(recovered.left, ElementsAre(StartsWith("attach of domain train0 (operation ")));
  state::Database database = open();
  Tools tools = host.tools(database);
  try {
    abandon(tools, number());
    ADD_FAILURE() << "it is not abandoned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
  }
  EXPECT_EQ(database.openOperations().size(), 1U);
}

TEST_F(OpenOperationTest, CanBeAbandonedAndThenChangesNothing) {
  const std::string before = host.fingerprint();
  const std::int64_t operation = number();
  state::Database database = open();
  Tools tools = host.tools(database);
  const Abandoned abandoned = abandon(tools, operation);
  EXPECT_EQ(abandoned.work, "attach of domain train0");
  EXPECT_THAT(abandoned.left, Contains(AllOf(StartsWith("done, partly done or not done: "),
                                             HasSubstr("vfio-pci"))));
  EXPECT_THAT(abandoned.left, Contains(HasSubstr("XML")));
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_THAT(database.openOperations(), IsEmpty());
  EXPECT_THAT(host.recoverAll(), IsEmpty());
  EXPECT_THROW(abandon(tools, operation), Error) << "it is not open any more";
}

}  // namespace
}  // namespace vfpass::apply
