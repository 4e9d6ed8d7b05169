#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "test_host.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::apply {
namespace {

using Names = std::set<std::string>;

// Guest address of an entry's device in one XML; empty if there is none.
std::optional<PciAddress> guestAddress(const std::string& xml, const std::string& name) {
  for (const auto& claim : domain::parseDomain(xml).claims) {
    if (claim.alias == "ua-vfpass-" + name) {
      return claim.guestAddress;
    }
  }
  return std::nullopt;
}

class LiveTest : public testing::Test {
 protected:
  LiveTest() {
    host.start();
    host.attachPlan();  // creates the database, like any command
    before = host.fingerprint();
  }

  const std::string& liveXml() { return host.hypervisor.domains[0].liveXml; }

  void both() { host.scope = {true, true}; }
  void liveOnly() { host.scope = {false, true}; }
  void configOnly() { host.scope = {true, false}; }

  Host host;
  std::string before;
};

TEST_F(LiveTest, UsesTheSameGuestAddressInBothConfigurationsAndDetachRestoresBoth) {
  both();
  host.attach();
  EXPECT_EQ(host.plugged(), (Names{"rail0", "rail1"}));
  for (const auto* name : {"rail0", "rail1"}) {
    ASSERT_TRUE(guestAddress(liveXml(), name));
    EXPECT_EQ(guestAddress(liveXml(), name), guestAddress(host.xml(), name));
  }
  EXPECT_EQ(host.leases()[0].state, LeaseState::running);
  EXPECT_TRUE(domain::parseDomain(liveXml()).managed)
      << "so that shutdown releases the right leases";
  EXPECT_TRUE(host.attachPlan().steps.empty());
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LiveTest, AttachSealsMetadataOfARunningDomainAgain) {
  both();
  host.attach();
  const auto parsed = domain::parseDomain(liveXml());
  EXPECT_TRUE(domain::isSealed(parsed, fake::sealKey()));
  auto& live = host.hypervisor.domains[0].liveXml.text();
  live.replace(live.find(parsed.seal), parsed.seal.size(), "");
  ASSERT_FALSE(domain::isSealed(domain::parseDomain(liveXml()), fake::sealKey()));
  host.attach();
  EXPECT_TRUE(domain::isSealed(domain::parseDomain(liveXml()), fake::sealKey()));
  EXPECT_TRUE(host.attachPlan().steps.empty());
}

TEST_F(LiveTest, LiveAttachChangesOnlyTheRunningDomain) {
  liveOnly();
  const std::string xml = host.xml();
  host.attach();
  EXPECT_EQ(host.plugged(), (Names{"rail0", "rail1"}));
  EXPECT_EQ(host.xml(), xml);
  EXPECT_FALSE(host.leases()[0].persistent);
  EXPECT_TRUE(host.attachPlan().steps.empty());
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LiveTest, SupportsTransientDomains) {
  host.stop();
  host.start(false);
  liveOnly();
  host.attach();
  EXPECT_EQ(host.plugged(), (Names{"rail0", "rail1"}));
  host.execute(host.detachPlan());
  EXPECT_TRUE(host.plugged().empty());
  EXPECT_TRUE(host.leases().empty());
}

TEST_F(LiveTest, LiveDetachKeepsTheLeaseAndAttachPlugsTheDeviceAgain) {
  both();
  host.attach();
  const std::string xml = host.xml();
  liveOnly();
  host.execute(host.detachPlan());
  EXPECT_TRUE(host.plugged().empty());
  EXPECT_EQ(host.xml(), xml);
  ASSERT_EQ(host.leases().size(), 2U);
  EXPECT_EQ(host.leases()[0].state, LeaseState::reserved);
  EXPECT_TRUE(host.kernel.inventory().pfs[0].vfs[0].settings.mac->isZero()) << "scrubbed";
  host.attach();
  EXPECT_EQ(host.plugged(), (Names{"rail0", "rail1"}));
  EXPECT_EQ(host.xml(), xml) << "the same lease, the same place";
  EXPECT_EQ(host.leases()[0].state, LeaseState::running);
  EXPECT_FALSE(host.kernel.inventory().pfs[0].vfs[0].settings.mac->isZero());
}

TEST_F(LiveTest, ConfigDetachKeepsTheDeviceInTheRunningGuest) {
  both();
  host.attach();
  configOnly();
  host.execute(host.detachPlan());
  EXPECT_EQ(host.plugged(), (Names{"rail0", "rail1"}));
  EXPECT_FALSE(domain::parseDomain(host.xml()).managed);
  ASSERT_EQ(host.leases().size(), 2U);
  EXPECT_FALSE(host.leases()[0].persistent);
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].driver, "vfio-pci");
  liveOnly();
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LiveTest, ChangesSwitchSettingsOfARunningGuest) {
  both();
  host.attach();
  host.mapping.vfs[0].settings.vlan = Vlan{200, 0, VlanProtocol::dot1q};
  host.attach();
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.vlan->id, 200);
  EXPECT_EQ(host.leases()[0].state, LeaseState::running);
  EXPECT_EQ(vfOf(domain::parseDomain(liveXml()).leases[0]).settings.vlan->id, 200);
  EXPECT_EQ(vfOf(domain::parseDomain(host.xml()).leases[0]).settings.vlan->id, 200);
}

TEST_F(LiveTest, CorrectsChangedValuesButNotUnobservableOnes) {
  both();
  host.attach();
  auto& vf = host.kernel.pfs.begin()->second.vfs[0];
  vf.settings.spoofCheck.reset();
  EXPECT_TRUE(host.attachPlan().steps.empty());
  vf.settings.vlan = Vlan{999, 0, VlanProtocol::dot1q};
  EXPECT_EQ(host.attachPlan().steps.size(), 1U);
  host.attach();
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.vlan->id, 100);
  EXPECT_TRUE(host.attachPlan().steps.empty());
}

TEST_F(LiveTest, RefusesAnotherMacForARunningGuest) {
  both();
  host.attach();
  host.mapping.vfs[0].macAutomatic = false;
  host.mapping.vfs[0].settings.mac = parseMacAddress("02:00:00:00:00:99");
  EXPECT_THROW(host.attachPlan(), Error);
}

std::string hostdevWithAlias(const std::string& alias) {
  return "<hostdev mode='subsystem' type='pci' managed='no'><source><address bus='0x99'/></source>"
         "<alias name='" +
         alias + "'/><address type='pci' bus='6'/></hostdev>";
}

TEST_F(LiveTest, RefusesADeviceWithOurAliasThatVfpassHasNotAttached) {
  both();
  host.hypervisor.attachDevice(host.uuid, hostdevWithAlias("ua-vfpass-rail0"));
  const std::string planted = host.fingerprint();
  try {
    host.attachPlan();
    FAIL() << "the guest has another device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
    EXPECT_THAT(error.what(), testing::HasSubstr("a device with the alias of rail0, which vfpass "
                                                 "has not attached"));
    EXPECT_THAT(error.what() + error.remedy(),
                testing::HasSubstr("virsh detach-device-alias train0 ua-vfpass-rail0 --live"));
  }
  EXPECT_EQ(host.fingerprint(), planted);
}

TEST_F(LiveTest, RefusesADeviceThatIsPluggedWithOurAliasMeanwhile) {
  both();
  const Plan plan = host.attachPlan();
  host.hypervisor.attachDevice(host.uuid, hostdevWithAlias("ua-vfpass-rail0"));
  try {
    host.execute(plan);
    FAIL() << "the guest has another device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
    EXPECT_THAT(error.what(), testing::HasSubstr("another device with the alias of rail0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("the XML claims host device 0000:99:00.0"));
  }
  EXPECT_TRUE(host.leases().empty());
}

TEST_F(LiveTest, ChangesNothingWithoutAFreePort) {
  both();
  host.mapping.vfs.push_back(host.mapping.vfs[0]);
  host.mapping.vfs[2].name = "rail2";
  try {
    host.attachPlan();
    FAIL() << "two ports cannot take three devices";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_NE(std::string(error.what()).find("no free hotplug port for rail2"), std::string::npos);
  }
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LiveTest, PlugThatLibvirtOnlyReportsRollsBackEverything) {
  both();
  const Plan plan = host.attachPlan();
  host.hypervisor.plugsNothing = true;
  try {
    host.execute(plan);
    FAIL() << "the guest has no device";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("rail0 is missing although"));
  }
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST_F(LiveTest, RefusedPlugRollsBackEverything) {
  both();
  for (int at = 0; at < 3; ++at) {
    const Plan plan = host.attachPlan();
    host.hypervisor.liveEffects = 0;
    host.hypervisor.failAtLive = at;
    EXPECT_THROW(host.execute(plan), Error);
    host.hypervisor.failAtLive = -1;
    EXPECT_EQ(host.fingerprint(), before) << at;
    EXPECT_TRUE(host.recoverAll().empty());
  }
}

TEST_F(LiveTest, PlugsTheOtherDeviceAgainIfTheGuestKeepsOne) {
  both();
  host.attach();
  const std::string attached = host.fingerprint();
  const Plan plan = host.detachPlan();
  host.hypervisor.liveEffects = 0;
  host.hypervisor.failAtLive = 1;  // the second unplug
  EXPECT_THROW(host.execute(plan), Error);
  host.hypervisor.failAtLive = -1;
  EXPECT_EQ(host.plugged(), (Names{"rail0", "rail1"}));
  EXPECT_EQ(host.fingerprint(), attached);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST_F(LiveTest, DetachesDevicesThatTheGuestHasReleasedItself) {
  both();
  host.attach();
  for (const auto* name : {"rail0", "rail1"}) {
    host.hypervisor.detachDevice(host.uuid, std::string("ua-vfpass-") + name, {}, [] {});
  }
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(LiveTest, StopAfterAKilledAttachReleasesAndRecovers) {
  both();
  const Plan plan = host.attachPlan();
  host.hypervisor.liveEffects = 0;
  host.hypervisor.killAfterLive = 1;  // the first plug
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.hypervisor.killAfterLive = -1;
  host.stop();
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.leases().size(), 2U) << "its XML has the devices: the attach is completed";
  EXPECT_EQ(host.leases()[0].state, LeaseState::reserved);
  EXPECT_TRUE(domain::carriesLeases(host.xml(), host.leases(), fake::sealKey()));
}

enum class LiveWork { attachBoth, attachLive, detachBoth, detachLive };

// Kills at every change of the running domain; recovery must end in the old or the new state.
class LiveCrashTest : public testing::TestWithParam<LiveWork> {
 protected:
  static bool isDetach() {
    return GetParam() == LiveWork::detachBoth || GetParam() == LiveWork::detachLive;
  }

  static void prepare(Host& host) {
    host.start();
    host.scope = {true, true};
    if (isDetach()) {
      host.attach();
    } else {
      host.attachPlan();
    }
    host.scope.config = GetParam() == LiveWork::attachBoth || GetParam() == LiveWork::detachBoth;
  }

  static Plan planFor(Host& host) { return isDetach() ? host.detachPlan() : host.attachPlan(); }

  static void kill(Host& host, bool afterwards, int at) {
    const Plan plan = planFor(host);
    host.hypervisor.liveEffects = 0;
    (afterwards ? host.hypervisor.killAfterLive : host.hypervisor.killBeforeLive) = at;
    EXPECT_THROW(host.execute(plan), fake::Killed);
    host.hypervisor.killAfterLive = host.hypervisor.killBeforeLive = -1;
  }
};

TEST_P(LiveCrashTest, RecoveryEndsInTheOldOrTheNewState) {
  Host old;
  prepare(old);
  Host done;
  prepare(done);
  done.execute(planFor(done));
  ASSERT_NE(old.fingerprint(), done.fingerprint());
  for (const bool afterwards : {false, true}) {
    for (int at = 0; at < 3; ++at) {
      Host host;
      prepare(host);
      kill(host, afterwards, at);
      EXPECT_EQ(host.recoverAll().size(), 1U);
      const std::string now = host.fingerprint();
      EXPECT_TRUE(now == old.fingerprint() || now == done.fingerprint())
          << (afterwards ? "after " : "before ") << at << ":\n"
          << now << "\nis neither\n"
          << old.fingerprint() << "\nnor\n"
          << done.fingerprint();
      EXPECT_TRUE(host.recoverAll().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Works, LiveCrashTest,
                         testing::Values(LiveWork::attachBoth, LiveWork::attachLive,
                                         LiveWork::detachBoth, LiveWork::detachLive));

}  // namespace
}  // namespace vfpass::apply
