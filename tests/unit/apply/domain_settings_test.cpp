// Domain settings are added by attach and removed with the last lease.
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "test_host.hpp"

namespace vfpass::apply {
namespace {

DomainSetting limit(const std::string& kibibytes) {
  return {"hard-limit", "a limit", "VFIO pins memory", SettingStanding::proposed,
          DomainEdit{"hard-limit",
                     EditPlace::memtune,
                     {"<hard_limit unit='KiB'>" + kibibytes + "</hard_limit>"}}};
}

Plan planWith(Host& host, const DomainSetting& setting) {
  auto input = host.attachInput(host.leases().empty() ? 1 : 2);
  input.mapping.applyDomainSettings = true;
  input.settings = {setting};
  return plan::planAttach(input).plan;
}

TEST(DomainSettings, AreAddedByAttachAndRemovedByDetach) {
  Host host;
  host.attachPlan();
  const std::string before = host.fingerprint();
  const std::string xml = host.xml();
  host.execute(planWith(host, limit("1048576")));
  EXPECT_NE(host.xml().find("<hard_limit unit='KiB'>1048576</hard_limit>"), std::string::npos);
  EXPECT_TRUE(domain::carriesLeases(host.xml(), host.leases(), fake::sealKey()));
  EXPECT_TRUE(planWith(host, limit("1048576")).steps.empty());
  host.execute(host.detachPlan());
  EXPECT_EQ(host.xml(), xml);
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(DomainSettings, AreUpdatedByTheNextAttach) {
  Host host;
  const std::string xml = host.xml();
  host.execute(planWith(host, limit("1048576")));
  host.execute(planWith(host, limit("2097152")));
  EXPECT_EQ(host.xml().find(">1048576</hard_limit>"), std::string::npos);
  EXPECT_NE(host.xml().find(">2097152</hard_limit>"), std::string::npos);
  host.execute(host.detachPlan());
  EXPECT_EQ(host.xml(), xml);
}

TEST(DomainSettings, AreRolledBackIfTheAttachFails) {
  Host host;
  host.attachPlan();
  const std::string before = host.fingerprint();
  host.hypervisor.refuseDefine = true;
  EXPECT_ANY_THROW(host.execute(planWith(host, limit("1048576"))));
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(DomainSettings, AreCompletedOrRolledBackAfterAKilledAttach) {
  for (const bool after : {false, true}) {
    Host host;
    const std::string xml = host.xml();
    const Plan plan = planWith(host, limit("1048576"));
    (after ? host.hypervisor.killAfterDefine : host.hypervisor.killBeforeDefine) = true;
    EXPECT_ANY_THROW(host.execute(plan));
    host.hypervisor.killAfterDefine = host.hypervisor.killBeforeDefine = false;
    host.recoverAll();
    EXPECT_EQ(host.xml().find("hard_limit") != std::string::npos, after);
    EXPECT_EQ(host.leases().empty(), !after);
    if (after) {
      host.execute(host.detachPlan());
    }
    EXPECT_EQ(host.xml(), xml);
  }
}

}  // namespace
}  // namespace vfpass::apply
