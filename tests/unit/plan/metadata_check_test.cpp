#include "vfpass/plan/plan_hook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class MetadataCheckTest : public testing::Test {
 protected:
  MetadataCheckTest() {
    lease.domain = uuid;
    lease.entry = "rail0";
    vfOf(lease).settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    vfOf(lease).settings.trust = false;
    lease.generation = 3;
  }

  std::string onlyObjection(const std::vector<Lease>& metadata, const std::vector<Lease>& known) {
    const auto objections = checkMetadata(uuid, "it's a", metadata, known);
    EXPECT_THAT(objections, SizeIs(1));
    return objections.empty() ? "" : objections[0].message + "; " + objections[0].remedy;
  }

  Uuid uuid = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  Lease lease;
};

TEST_F(MetadataCheckTest, AcceptsAttachedLeaseInAnyState) {
  Lease running = lease;
  running.state = LeaseState::running;
  running.bootId = "boot";
  running.domainName = "renamed";
  running.original.created = true;
  EXPECT_THAT(checkMetadata(uuid, "a", {lease}, {running}), IsEmpty());
  EXPECT_THAT(checkMetadata(uuid, "a", {}, {}), IsEmpty());
}

TEST_F(MetadataCheckTest, NamesEntryTermsAndRemedy) {
  Lease edited = lease;
  vfOf(edited).settings.vlan->id = 200;
  vfOf(edited).settings.trust = true;
  EXPECT_EQ(onlyObjection({edited}, {lease}),
            "the XML's vfpass metadata for rail0 differs from the attached lease: vlan, trust; "
            "run `vfpass attach 'it'\\''s a'`");
}

TEST_F(MetadataCheckTest, DetectsChangeOfEveryTerm) {
  const auto termOf = [&](auto change) {
    Lease edited = lease;
    change(edited);
    const auto terms = differingTerms(edited, lease);
    EXPECT_THAT(terms, SizeIs(1));
    return terms.empty() ? "" : terms[0];
  };
  EXPECT_EQ(termOf([](Lease& each) { each.part = LeasedFunction{}; }), "kind");
  EXPECT_EQ(termOf([](Lease& each) { each.pf.bus = 9; }), "device");
  EXPECT_EQ(termOf([](Lease& each) { each.device.bus = 9; }), "device");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).index = 9; }), "index");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).infiniband = true; }), "link layer");
  EXPECT_EQ(termOf([](Lease& each) { each.pfPath = "x"; }), "card");
  EXPECT_EQ(termOf([](Lease& each) { each.pfSerial = "x"; }), "card");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).count = 9; }), "vf-count");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).settings.mac = MacAddress{}; }), "mac");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).settings.nodeGuid = Guid{1}; }), "node-guid");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).required = {Attribute::mac}; }), "required");
  EXPECT_EQ(termOf([](Lease& each) { each.allow = {Allowance::trust}; }), "allow");
  EXPECT_EQ(termOf([](Lease& each) { each.managed = true; }), "managed");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).interfaceForm = true; }), "form");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).teamingWith = "x"; }), "teaming");
  EXPECT_EQ(termOf([](Lease& each) { vfOf(each).migrationDriver = "mlx5_vfio_pci"; }),
            "VFIO driver");
  EXPECT_EQ(termOf([](Lease& each) { each.persistent = false; }), "persistent");
  EXPECT_EQ(termOf([](Lease& each) { each.guest.address.bus = 9; }), "guest address");
  EXPECT_EQ(termOf([](Lease& each) { each.original.driver = "x"; }), "original driver");
  EXPECT_EQ(termOf([](Lease& each) { each.original.driverOverride = "x"; }), "original driver");
  EXPECT_EQ(termOf([](Lease& each) { each.original.settings.trust = true; }), "original settings");
  EXPECT_EQ(termOf([](Lease& each) { each.generation = 9; }), "generation");
  EXPECT_EQ(termOf([](Lease& each) { each.entry = "x"; }), "other terms");
}

TEST_F(MetadataCheckTest, RefusesLeaseMissingOnEitherSide) {
  EXPECT_THAT(onlyObjection({lease}, {}),
              HasSubstr("the state database has no lease rail0 for this domain"));
  EXPECT_THAT(onlyObjection({}, {lease}), HasSubstr("metadata has no entry rail0"));
  lease.persistent = false;
  EXPECT_THAT(checkMetadata(uuid, "a", {}, {lease}), IsEmpty())
      << "only the running domain had it, and it has stopped";
}

TEST_F(MetadataCheckTest, RefusesCopiedMetadataAndIgnoresOtherDomains) {
  Lease foreign = lease;
  foreign.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  EXPECT_THAT(onlyObjection({foreign}, {foreign}), HasSubstr("the XML was copied"));
  EXPECT_THAT(checkMetadata(uuid, "a", {lease}, {foreign, lease}), IsEmpty());
}

}  // namespace
}  // namespace vfpass::plan
