// A command of the card's firmware fails, and so does the attempt to restore what there was before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::apply {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FirmwareFault : public testing::Test {
 protected:
  FirmwareFault() {
    host.mapping.vfs[0].settings.linkState = LinkState::enable;
    host.mapping.vfs[1].settings.mac = *parseMacAddress("02:00:00:00:00:77");
    host.attachPlan();  // makes the database
    detached = host.fingerprint();
  }
  void failing(std::vector<Attribute> attributes) {
    host.kernel.failingAttributes[pfAddress] = std::move(attributes);
  }
  std::string failureOf(const Plan& plan) {
    try {
      host.execute(plan);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  // What an administrator does: the card works again, and `vfpass recover`.
  std::vector<std::string> recover() {
    host.hypervisor.afterRead = nullptr;
    failing({});
    host.kernel.failingProbes.clear();
    return host.recoverAll();
  }
  Plan releasePlan() {
    return plan::planRelease(host.uuid, "train0", host.leases(), host.kernel.inventory(),
                             host.kernel.bootId());
  }
  PciAddress vf(unsigned index) { return host.kernel.pfs.at(pfAddress).vfs.at(index).address; }

  Host host;
  std::string detached;
};

TEST_F(FirmwareFault, AttachThatCannotRestoreAttributesIsRolledBackByRecover) {
  failing({Attribute::vlan});
  host.kernel.failureSpreads = true;
  EXPECT_THAT(failureOf(host.attachPlan()),
              AllOf(HasSubstr("cannot set vlan"),
                    HasSubstr("rolling back failed: PF 0000:01:00.0: cannot set mac of VF")));
  EXPECT_EQ(host.leases().size(), 2U) << "the MAC is not restored";
  EXPECT_EQ(recover().size(), 1U);
  EXPECT_EQ(host.fingerprint(), detached);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST_F(FirmwareFault, AttachWhoseInverseFailsKeepsItsLeasesUntilRecover) {
  host.hypervisor.refuseDefine = true;
  const Plan plan = host.attachPlan();
  host.hypervisor.afterRead = [&](auto& /*domain*/) { failing({Attribute::vlan}); };
  EXPECT_THAT(failureOf(plan), HasSubstr("rolling back failed: PF 0000:01:00.0: cannot set vlan"));
  EXPECT_EQ(host.leases().size(), 2U);
  EXPECT_EQ(recover().size(), 1U);
  EXPECT_EQ(host.fingerprint(), detached);
}

TEST_F(FirmwareFault, AttachThatCreatedTheVfsNeedNotRestoreThem) {
  Host empty(0);
  const Plan plan = empty.attachPlan();
  const std::string before = empty.fingerprint();
  empty.kernel.failingAttributes[pfAddress] = {Attribute::vlan};
  empty.kernel.failureSpreads = true;
  EXPECT_THROW(empty.execute(plan), Error);
  EXPECT_EQ(empty.fingerprint(), before);
  EXPECT_TRUE(empty.recoverAll().empty());
}

TEST_F(FirmwareFault, FailedOptionalAttributeIsNoRefusal) {
  failing({Attribute::trust, Attribute::spoofCheck});
  EXPECT_EQ(host.execute(host.attachPlan()).size(), 1U) << "a warning";
  EXPECT_TRUE(vfOf(host.leases()[0]).refused.empty()) << "the driver knows the attribute";
}

TEST_F(FirmwareFault, DetachThatCannotRestoreAttributesIsRolledBack) {
  host.attach();
  const std::string attached = host.fingerprint();
  failing({Attribute::vlan});
  EXPECT_THAT(failureOf(host.detachPlan()),
              AllOf(HasSubstr("cannot set vlan of VF"), Not(HasSubstr("rolling back failed"))));
  EXPECT_EQ(host.fingerprint(), attached);
  EXPECT_TRUE(recover().empty()) << "a firmware that goes on failing must not block every command";
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), detached);
}

TEST_F(FirmwareFault, DetachWhoseProbeFailsIsOldOrNewAfterRecover) {
  host.attach();
  const std::string attached = host.fingerprint();
  for (const unsigned index : {0U, 1U}) {
    host.kernel.failingProbes = {vf(index)};
    EXPECT_THAT(failureOf(host.detachPlan()), HasSubstr("cannot bind"));
    recover();
    EXPECT_TRUE(host.fingerprint() == attached || host.fingerprint() == detached)
        << host.fingerprint();
    if (host.fingerprint() == detached) {
      host.attach();
    }
  }
}

TEST_F(FirmwareFault, AttachThatCannotRestoreADriverIsRolledBackByRecover) {
  host.hypervisor.refuseDefine = true;
  const Plan plan = host.attachPlan();
  host.kernel.failingProbes = {vf(1)};
  EXPECT_THAT(failureOf(plan), HasSubstr("rolling back failed"));
  recover();
  EXPECT_EQ(host.fingerprint(), detached);
}

TEST_F(FirmwareFault, StoppedGuestKeepsItsLeasesUntilItsVfsAreClean) {
  host.attach();
  host.execute(host.preparePlan());
  failing({Attribute::vlan});
  EXPECT_THAT(failureOf(releasePlan()), HasSubstr("cannot set vlan of VF"));
  EXPECT_NE(host.leases()[0].state, LeaseState::reserved);
  EXPECT_EQ(recover().size(), 1U);
  EXPECT_EQ(host.leases()[0].state, LeaseState::reserved);
  EXPECT_EQ(host.kernel.pfs.at(pfAddress).vfs[0].settings.vlan, Vlan{});
}

TEST_F(FirmwareFault, RefusedAttributeDoesNotKeepALease) {
  host.attach();
  host.execute(host.preparePlan());
  host.kernel.refusedAttributes[pfAddress] = {Attribute::vlan};
  EXPECT_EQ(host.execute(releasePlan()).size(), 1U) << "a warning";
  EXPECT_EQ(host.leases()[0].state, LeaseState::reserved);
}

TEST_F(FirmwareFault, VfsThatVanishDuringAnAttachAreNotRestored) {
  const Plan plan = host.attachPlan();
  host.hypervisor.refuseDefine = true;
  host.hypervisor.afterRead = [&](auto& /*domain*/) { host.kernel.pfs.at(pfAddress).vfs.clear(); };
  EXPECT_EQ(failureOf(plan).find("rolling back failed"), std::string::npos);
  EXPECT_TRUE(host.leases().empty());
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST_F(FirmwareFault, VfsThatRemainAreRestoredWhenAnotherOneVanishes) {
  auto& vfs = host.kernel.pfs.at(pfAddress).vfs;
  const VfSettings before = vfs[0].settings;
  const Plan plan = host.attachPlan();
  host.hypervisor.refuseDefine = true;
  host.hypervisor.afterRead = [&](auto& /*domain*/) {
    EXPECT_NE(vfs[0].settings, before) << "the attach has configured VF 0";
    vfs.resize(1);
  };
  EXPECT_EQ(failureOf(plan).find("rolling back failed"), std::string::npos);
  EXPECT_EQ(vfs[0].settings, before);
  EXPECT_TRUE(host.leases().empty());
}

TEST_F(FirmwareFault, RecoverRestoresTheVfsThatRemain) {
  auto& vfs = host.kernel.pfs.at(pfAddress).vfs;
  const VfSettings before = vfs[0].settings;
  const Plan plan = host.attachPlan();
  host.hypervisor.refuseDefine = true;
  host.hypervisor.afterRead = [&](auto& /*domain*/) { failing({Attribute::vlan}); };
  EXPECT_THAT(failureOf(plan), HasSubstr("rolling back failed"));
  vfs.resize(1);
  recover();
  EXPECT_EQ(vfs[0].settings, before);
  EXPECT_TRUE(host.leases().empty());
}

}  // namespace
}  // namespace vfpass::apply
