#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"
#include "vfpass/apply/device_owner.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::apply {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

/// An operation on a running guest stays open, and the domain stops and starts again.
class LaterRunTest : public testing::Test {
 protected:
  /// Starts without devices; the next attach is to change these configurations.
  void startBare(const Scope& scope) {
    host.start();
    host.scope = scope;
  }
  /// The devices are in the persistent configuration, but not in the running guest.
  Plan planToPlugAgain() {
    startBare({true, true});
    host.attach();
    host.scope = {false, true};
    host.execute(host.detachPlan());
    return host.attachPlan();
  }
  /// What libvirt and the hook do at a stop, and at a start with the devices.
  void stop() {
    host.kernel.holders.clear();
    host.stop();
  }
  void restart() {
    stop();
    host.startWithHook();
  }
  /// libvirtd dies before the reply to a definition or a plug, and is back.
  void executeWithoutReply(const Plan& plan, int live) {
    host.hypervisor.loseReplyOfDefine = live < 0;
    host.hypervisor.loseReplyAtLive = live;
    EXPECT_THROW(host.execute(plan), Error);
    host.hypervisor.loseReplyAtLive = -1;
    host.hypervisor.disconnected = false;
  }
  void expectLeftToGuest() {
    const std::string started = host.fingerprint();
    ASSERT_EQ(host.plugged().size(), 2U) << "the guest has both devices";
    EXPECT_THAT(host.recoverAll(), ElementsAre(HasSubstr("the domain has been started")));
    EXPECT_EQ(host.fingerprint(), started);
    for (const Lease& lease : host.leases()) {
      EXPECT_EQ(lease.state, LeaseState::running) << lease.entry;
    }
    EXPECT_THAT(host.recoverAll(), IsEmpty());
  }

  Host host;
};

TEST_F(LaterRunTest, KeepsItsDevicesAfterALostDefinition) {
  startBare({true, true});
  executeWithoutReply(host.attachPlan(), -1);
  restart();
  expectLeftToGuest();
}

TEST_F(LaterRunTest, KeepsItsDevicesAfterALostPlug) {
  startBare({true, true});
  executeWithoutReply(host.attachPlan(), 1);  // after the metadata
  restart();
  expectLeftToGuest();
}

TEST_F(LaterRunTest, KeepsDevicesThatWereToBePluggedInAgain) {
  const Plan plan = planToPlugAgain();
  host.kernel.effects = 0;
  host.kernel.killBeforeEffect = 0;  // the attributes, long before the plug
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.kernel.killBeforeEffect = -1;
  restart();
  expectLeftToGuest();
}

TEST_F(LaterRunTest, KeepsDevicesOfWhichOneWasPluggedIn) {
  const Plan plan = planToPlugAgain();
  host.hypervisor.liveEffects = 0;
  host.hypervisor.killAfterLive = 1;  // the first device
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterLive = -1;
  restart();
  expectLeftToGuest();
}

TEST_F(LaterRunTest, IsRolledBackOnceThatRunHasEnded) {
  startBare({true, true});
  const Plan plan = host.attachPlan();
  const std::string xml = host.xml();
  executeWithoutReply(plan, -1);
  restart();
  stop();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_EQ(host.xml(), xml);
}

// Nothing in its XML makes that start wait or tell the hook of it.
TEST_F(LaterRunTest, GetsNoDeviceThatWasForAnEarlierRun) {
  startBare({false, true});
  const Plan plan = host.attachPlan();
  host.hypervisor.killAfterLive = 0;  // the metadata
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterLive = -1;
  host.stop();
  host.start();
  EXPECT_THAT(host.recoverAll(), ElementsAre(EndsWith("rolled back")));
  EXPECT_THAT(host.plugged(), IsEmpty());
  EXPECT_THAT(host.leases(), IsEmpty());
  EXPECT_THAT(host.recoverAll(), IsEmpty());
}

// The same while the attach still works.
TEST_F(LaterRunTest, GetsNoDeviceOfAnAttachThatGoesOn) {
  startBare({false, true});
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  bool restarted = false;
  host.checkpoint = [&] {
    if (!restarted && domain::parseDomain(host.hypervisor.domains[0].liveXml).managed) {
      restarted = true;
      host.setLeases(LeaseState::reserved);  // as the hook does at the stop
    }
  };
  EXPECT_THROW(host.execute(plan), Error);
  ASSERT_TRUE(restarted);
  EXPECT_THAT(host.plugged(), IsEmpty());
  EXPECT_EQ(host.fingerprint(), before);
}

// A detach from the running guest alone has begun to return the devices, and the next start has
// them again.
TEST_F(LaterRunTest, KeepsDevicesThatAnEarlierRunWasToLose) {
  host.attach();
  host.startWithHook();
  host.scope = {false, true};
  const Plan plan = host.detachPlan();
  host.hypervisor.afterUnplug = [this] { host.kernel.holders.clear(); };
  host.checkpoint = [this] {
    if (!domain::parseDomain(host.hypervisor.domains[0].liveXml).managed) {
      throw fake::Killed{};  // the resets are marked as started
    }
  };
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.checkpoint = [] {};
  ASSERT_THAT(host.plugged(), IsEmpty());
  auto& domain = host.hypervisor.domains[0];
  domain.active = false;  // the devices are the host's, so the hook releases nothing
  domain.liveXml = {};
  host.startWithHook();
  expectLeftToGuest();
}

TEST(IsYetToBePlugged, OnlyBeforeThePlugHasBegun) {
  Host host;
  host.start();
  host.scope = {true, true};
  host.hypervisor.killBeforeLive = 1;  // the first device
  EXPECT_THROW(host.execute(host.attachPlan()), fake::Killed);
  const state::Database database(host.folder / "state", state::Database::Open::readOnly,
                                 databaseTimeout);
  const auto open = database.openOperations();
  const auto leases = database.leases();
  ASSERT_EQ(leases.size(), 2U);
  EXPECT_FALSE(isYetToBePlugged(leases[0], open)) << "started";
  EXPECT_TRUE(isYetToBePlugged(leases[1], open)) << "planned";
  EXPECT_FALSE(isYetToBePlugged(leases[1], {}));
}

}  // namespace
}  // namespace vfpass::apply
