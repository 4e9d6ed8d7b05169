#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "test_host.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::apply {
namespace {

std::vector<Lease> leasesOf(const Host& host) {
  return state::Database(host.folder / "state", state::Database::Open::readOnly,
                         std::chrono::milliseconds(1000))
      .leases();
}

TEST(RoundTrip, DetachRestoresTheStateBeforeAttach) {
  for (const unsigned vfs : {0U, 4U}) {
    Host host(vfs);
    host.attachPlan();
    const std::string before = host.fingerprint();
    const std::string xml = host.xml();
    host.attach();
    EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].driver, "vfio-pci");
    EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.vlan->id, 100);
    host.execute(host.detachPlan());
    EXPECT_EQ(host.fingerprint(), before);
    EXPECT_EQ(host.xml(), xml);
  }
}

// The kernel changes vectors only while no driver is bound.
TEST(RoundTrip, DetachRestoresInterruptVectors) {
  for (const std::string driver : {"mlx5_core", "", "vfio-pci"}) {
    Host host(4);
    host.shareVectors();
    host.kernel.pfs.begin()->second.vfs[0].driver = driver;
    host.attachPlan();
    const std::string before = host.fingerprint();
    host.attach();
    const PhysicalFunction attached = host.kernel.inventory().pfs[0];
    EXPECT_EQ(attached.vfs[0].driver, "vfio-pci");
    EXPECT_EQ(attached.vfs[0].settings.msixVectors, 5);
    EXPECT_EQ(attached.vfs[1].settings.msixVectors, 8) << "not stated";
    EXPECT_TRUE(host.attachPlan().steps.empty());
    host.execute(host.detachPlan());
    EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.msixVectors, 8);
    EXPECT_EQ(host.fingerprint(), before) << driver;
  }
}

// Between two runs the VF keeps them; a reboot loses them.
TEST(RoundTrip, PrepareSetsInterruptVectorsAgain) {
  Host host(4);
  host.shareVectors();
  host.attach();
  host.execute(host.preparePlan());
  host.execute(plan::planRelease(host.uuid, "train0", leasesOf(host), host.kernel.inventory(),
                                 host.kernel.bootId()));
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.msixVectors, 5);
  host.kernel.reboot();
  host.execute(host.preparePlan());
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.msixVectors, 5);
}

TEST(RoundTrip, AttachRestoresVectorsThatTheMappingNoLongerSets) {
  Host host(4);
  host.shareVectors();
  host.attach();
  host.mapping.vfs[0].settings.msixVectors.reset();
  host.mapping.vfs[0].required.erase(Attribute::msixVectors);
  host.attach();
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].settings.msixVectors, 8);
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[0].driver, "vfio-pci");
}

TEST(RoundTrip, SecondAttachChangesNothing) {
  Host host;
  host.attach();
  EXPECT_TRUE(host.attachPlan().steps.empty());
}

TEST(RoundTrip, PrepareReleaseAndRebootKeepTheOriginalState) {
  Host host(4);
  host.attachPlan();
  const std::string before = host.fingerprint();
  host.attach();
  host.execute(host.preparePlan());
  EXPECT_EQ(leasesOf(host)[0].state, LeaseState::starting);
  host.execute(plan::planRelease(host.uuid, "train0", leasesOf(host), host.kernel.inventory(),
                                 host.kernel.bootId()));
  EXPECT_EQ(leasesOf(host)[0].state, LeaseState::reserved);
  EXPECT_TRUE(host.kernel.inventory().pfs[0].vfs[0].settings.mac->isZero());
  EXPECT_TRUE(host.attachPlan().steps.empty()) << "scrubbed VFs are not drift";
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(RoundTrip, PrepareCreatesTheVfsAfterARebootAndDetachRemovesThem) {
  Host host(4);
  host.attach();
  const auto wanted = vfOf(leasesOf(host)[1]).settings;
  host.kernel.reboot();
  host.execute(host.preparePlan());
  const PhysicalFunction pf = host.kernel.inventory().pfs[0];
  EXPECT_EQ(pf.vfs.size(), 4U);
  EXPECT_TRUE(leasesOf(host)[0].original.created);
  EXPECT_TRUE(domain::carriesLeases(host.xml(), leasesOf(host), fake::sealKey()))
      << "that is not drift";
  EXPECT_TRUE(differingAttributes(wanted, pf.vfs[vfOf(leasesOf(host)[1]).index].settings).empty());
  host.execute(plan::planRelease(host.uuid, "train0", leasesOf(host), host.kernel.inventory(),
                                 host.kernel.bootId()));
  host.execute(host.detachPlan());
  EXPECT_TRUE(host.kernel.inventory().pfs[0].vfs.empty());
}

TEST(RoundTrip, AttachRestoresAVfRemovedFromTheMapping) {
  Host host;
  host.attach();
  host.mapping.vfs.pop_back();
  host.attach();
  EXPECT_EQ(leasesOf(host).size(), 1U);
  EXPECT_EQ(host.kernel.inventory().pfs[0].vfs[1].driver, "mlx5_core");
  EXPECT_EQ(domain::parseDomain(host.xml()).claims.size(), 1U);
}

VfSettings seen(const Host& host, unsigned index) {
  return host.kernel.pfs.at(pfAddress).vfs.at(index).settings;
}

// What `ip link set PF vf N` can set for a VF that does not exist.
VfSettings leftOver() {
  VfSettings settings;
  settings.mac = *parseMacAddress("02:00:00:00:00:09");
  settings.vlan = Vlan{9, 0, VlanProtocol::dot1q};
  settings.trust = true;
  return settings;
}

TEST(NewVfs, HaveNeutralValuesAfterAttach) {
  Host host(0);
  host.mapping.vfs[0].settings.vlan.reset();
  host.mapping.vfs[0].settings.trust.reset();
  host.kernel.leftOvers[pfAddress] = {{0, leftOver()}, {5, leftOver()}};
  host.attach();
  EXPECT_EQ(seen(host, 0).vlan, Vlan{}) << "the lease states none";
  EXPECT_EQ(seen(host, 0).trust, false);
  EXPECT_EQ(seen(host, 0).mac, vfOf(leasesOf(host)[0]).settings.mac);
  EXPECT_EQ(seen(host, 1).vlan->id, 100);
  EXPECT_EQ(seen(host, 5), neutralSettings(false));
  host.execute(host.detachPlan());
  EXPECT_TRUE(host.kernel.pfs.at(pfAddress).vfs.empty());
}

TEST(NewVfs, HaveNeutralValuesAfterAStartThatCreatesThem) {
  Host host(0);
  host.attach();
  host.kernel.reboot();
  host.kernel.leftOvers[pfAddress] = {{0, leftOver()}, {5, leftOver()}};
  host.execute(host.preparePlan());
  EXPECT_EQ(seen(host, 0).mac, vfOf(leasesOf(host)[0]).settings.mac);
  EXPECT_EQ(seen(host, 0).vlan->id, 100);
  EXPECT_EQ(seen(host, 5), neutralSettings(false));
}

TEST(NewVfs, MayKeepWhatTheDriverRefuses) {
  Host host(0);
  host.kernel.leftOvers[pfAddress] = {{4, leftOver()}, {5, leftOver()}};
  host.mapping.vfs.pop_back();
  host.mapping.vfs[0].settings.trust.reset();
  host.kernel.refusedAttributes[pfAddress] = {Attribute::trust};
  const auto warnings = host.execute(host.attachPlan());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].find("VFs 4, 5 of PF 0000:01:00.0: the driver refused the optional "
                             "attribute trust"),
            0U)
      << warnings[0];
  EXPECT_TRUE(seen(host, 5).mac->isZero());
  EXPECT_TRUE(vfOf(leasesOf(host)[0]).refused.empty()) << "the lease does not state it";
}

TEST(NewVfs, CreationWarns) {
  Host host(0);
  host.kernel.creationWarnings = {"the kernel log cannot be read"};
  EXPECT_EQ(host.execute(host.attachPlan()), host.kernel.creationWarnings);
}

TEST(RoundTrip, LeaseInheritsNothingThatItDoesNotState) {
  Host host;
  auto& settings = host.kernel.pfs.at(pfAddress).vfs[0].settings;
  settings.rate = Rate{0, 100};
  settings.linkState = LinkState::disable;
  host.attachPlan();
  const std::string before = host.fingerprint();
  host.attach();
  EXPECT_EQ(seen(host, 0).rate, Rate{});
  EXPECT_EQ(seen(host, 0).linkState, LinkState::automatic);
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

class RefusedAttributeTest : public testing::Test {
 protected:
  RefusedAttributeTest() {
    host.kernel.refusedAttributes[pfAddress] = {Attribute::spoofCheck, Attribute::trust};
  }
  Lease lease() { return leasesOf(host)[0]; }

  Host host;
  const std::set<Attribute> spoofCheck{Attribute::spoofCheck};
};

TEST_F(RefusedAttributeTest, IsAWarningAndRecorded) {
  const auto warnings = host.execute(host.attachPlan());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].find("VFs 0, 1 of PF 0000:01:00.0: "), 0U) << warnings[0];
  EXPECT_EQ(vfOf(lease()).refused, spoofCheck) << "trust was off before";
  EXPECT_EQ(vfOf(domain::parseDomain(host.xml()).leases[0]).refused, spoofCheck);
}

TEST_F(RefusedAttributeTest, LeavesNothingToDo) {
  host.attach();
  EXPECT_TRUE(host.attachPlan().steps.empty());
  host.execute(host.preparePlan());
  host.start();
  host.scope = {true, true};
  EXPECT_TRUE(host.attachPlan().steps.empty()) << "no drift";
}

TEST_F(RefusedAttributeTest, IsNotSetWhenTheGuestStops) {
  host.attach();
  host.execute(host.preparePlan());
  EXPECT_TRUE(host.execute(plan::planRelease(host.uuid, "train0", leasesOf(host),
                                             host.kernel.inventory(), host.kernel.bootId()))
                  .empty());
  EXPECT_EQ(vfOf(lease()).refused, spoofCheck);
}

TEST_F(RefusedAttributeTest, IsTriedAgainAtEachStart) {
  host.attach();
  EXPECT_EQ(host.execute(host.preparePlan()).size(), 1U);
  EXPECT_EQ(vfOf(lease()).refused, spoofCheck);
  host.execute(plan::planRelease(host.uuid, "train0", leasesOf(host), host.kernel.inventory(),
                                 host.kernel.bootId()));
  host.kernel.refusedAttributes.clear();
  EXPECT_TRUE(host.execute(host.preparePlan()).empty()) << "the metadata are no objection";
  EXPECT_TRUE(vfOf(lease()).refused.empty());
  EXPECT_EQ(seen(host, vfOf(lease()).index).spoofCheck, true);
}

TEST_F(RefusedAttributeTest, IsTriedAgainWhenTheMappingChanges) {
  host.attach();
  host.kernel.refusedAttributes.clear();
  host.mapping.vfs[0].settings.rate = Rate{0, 50};
  host.attach();
  EXPECT_TRUE(vfOf(lease()).refused.empty());
  EXPECT_EQ(seen(host, vfOf(lease()).index).spoofCheck, true);
}

TEST_F(RefusedAttributeTest, StillFailsIfRequired) {
  host.mapping.vfs[0].required.insert(Attribute::spoofCheck);
  host.attachPlan();
  const std::string before = host.fingerprint();
  EXPECT_THROW(host.attach(), Error);
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(RefusedAttributeTest, IsRestoredWithTheHost) {
  host.attachPlan();
  const std::string before = host.fingerprint();
  host.attach();
  EXPECT_TRUE(host.execute(host.detachPlan()).empty());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST_F(RefusedAttributeTest, IsRecordedByEveryRecoveryThatCompletesTheAttach) {
  for (int kill = 0;; ++kill) {
    Host other;
    other.kernel.refusedAttributes[pfAddress] = {Attribute::spoofCheck};
    const Plan plan = other.attachPlan();
    other.kernel.killAfterEffect = kill;
    bool killed = false;
    try {
      other.execute(plan);
    } catch (const fake::Killed&) {
      killed = true;
    }
    other.kernel.killAfterEffect = -1;
    other.recoverAll();
    for (const Lease& each : leasesOf(other)) {
      EXPECT_EQ(vfOf(each).refused, spoofCheck);
    }
    if (!killed) {
      break;
    }
  }
}

TEST(RoundTrip, RefusedRequiredAttributeRollsBackTheAttach) {
  Host host;
  const Plan plan = host.attachPlan();
  const std::string before = host.fingerprint();
  host.kernel.refusedAttributes[*parsePciAddress("0000:01:00.0")] = {Attribute::vlan};
  EXPECT_THROW(host.execute(plan), Error);
  EXPECT_EQ(host.fingerprint(), before);
}

}  // namespace
}  // namespace vfpass::apply
