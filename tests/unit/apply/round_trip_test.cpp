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

TEST(RoundTrip, RefusedOptionalAttributeIsAWarning) {
  Host host;
  host.kernel.refusedAttributes[*parsePciAddress("0000:01:00.0")] = {Attribute::spoofCheck};
  EXPECT_EQ(host.execute(host.attachPlan()).size(), 2U);
  EXPECT_EQ(leasesOf(host).size(), 2U);
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
