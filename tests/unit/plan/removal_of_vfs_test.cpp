// VFs that vfpass created are removed with their last lease, unless a definition of libvirt names
// one of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/plan_detach.hpp"

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class RemovalOfVfs : public testing::Test {
 protected:
  RemovalOfVfs() {
    const PhysicalFunction& pf = kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    lease.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    lease.domainName = "train0";
    lease.entry = "rail0";
    lease.pf = pf.address;
    lease.pfPath = pf.path;
    lease.device = pf.vfs[2].address;
    lease.original.created = true;
    vfOf(lease).index = 2;
    vfOf(lease).count = 4;
  }

  [[nodiscard]] PciAddress vf(unsigned index) const {
    return kernel.pfs.begin()->second.vfs.at(index).address;
  }
  void define(const Uuid& uuid, const std::string& name, const Claim& claim) {
    definitions.domains.push_back({uuid, name, false, true, {claim}, {}, {}});
  }
  Restoration restoration() {
    return planRestore({lease}, {lease}, kernel.inventory(), definitions);
  }
  bool removes() {
    return std::ranges::any_of(restoration().steps, [](const Step& step) {
      return std::holds_alternative<RemoveVfs>(step.action);
    });
  }

  fake::FakeKernel kernel;
  Lease lease;
  Definitions definitions;
  const Uuid other = *parseUuid("00000000-0000-0000-0000-000000000099");
};

TEST_F(RemovalOfVfs, IsLeftOutIfADefinitionNamesOne) {
  ASSERT_TRUE(removes());
  EXPECT_THAT(restoration().notes, IsEmpty());
  define(other, "hand\n0", {vf(3), "", {}});
  EXPECT_FALSE(removes());
  const auto notes = restoration().notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0],
              HasSubstr("PF 0000:01:00.0 (ens1f0np0) keeps its VFs: VF 3 (0000:01:00.4) is named "
                        "by domain hand"));
  EXPECT_EQ(notes[0].find('\n'), std::string::npos);
}

TEST_F(RemovalOfVfs, IsLeftOutForANetworkWithOneInItsPool) {
  definitions.pools.push_back({"pool", {vf(0)}, {}});
  EXPECT_FALSE(removes());
  EXPECT_THAT(restoration().notes, ElementsAre(HasSubstr("is named by libvirt network pool")));
}

TEST_F(RemovalOfVfs, IsLeftOutForANetworkOfTheWholePf) {
  definitions.pools.push_back({"pool", {}, {"ens1f0np0"}});
  EXPECT_FALSE(removes());
  EXPECT_THAT(restoration().notes,
              ElementsAre(EndsWith("keeps its VFs: the PF is named by libvirt network pool")));
}

// XML that cannot be read may name any VF.
TEST_F(RemovalOfVfs, IsLeftOutIfTheDevicesOfADomainAreUnknown) {
  definitions.unknown = {"domain large"};
  EXPECT_FALSE(removes());
  EXPECT_THAT(restoration().notes,
              ElementsAre(EndsWith("keeps its VFs: the devices of domain large are unknown")));
  definitions.unknown.insert(definitions.unknown.end(), {"domain larger", "network pool"});
  EXPECT_THAT(restoration().notes,
              ElementsAre(EndsWith("the devices of domain large and 2 more are unknown")));
}

// Somebody has added a <hostdev> by hand for the VF that the domain has leased.
TEST_F(RemovalOfVfs, IsLeftOutForAHandMadeElementOfTheSameDomain) {
  define(lease.domain, "train0", {vf(2), "ua-vfpass-rail0", {}});
  EXPECT_TRUE(removes()) << "this element ends with the lease";
  definitions.domains[0].claims.push_back({vf(2), "", {}});
  EXPECT_FALSE(removes());
}

TEST_F(RemovalOfVfs, IgnoresDefinitionsWithDevicesOfOtherPfs) {
  define(other, "hand0", {*parsePciAddress("0000:02:00.1"), "", {}});
  EXPECT_TRUE(removes());
}

TEST_F(RemovalOfVfs, ValuesAreRestoredIfTheVfsStay) {
  kernel.pfs.begin()->second.vfs.at(2).settings.vlan = Vlan{42, 0, VlanProtocol::dot1q};
  lease.original.settings.vlan = Vlan{};
  vfOf(lease).settings.vlan = Vlan{42, 0, VlanProtocol::dot1q};
  define(other, "hand0", {vf(3), "", {}});
  const auto steps = restoration().steps;
  EXPECT_TRUE(std::ranges::any_of(
      steps, [](const Step& step) { return std::holds_alternative<ConfigureVfs>(step.action); }));
}

// The note is only for those whose VFs nothing else keeps.
TEST_F(RemovalOfVfs, HasNoNoteIfAnotherLeaseKeepsTheVfs) {
  define(other, "hand0", {vf(3), "", {}});
  Lease second = lease;
  second.entry = "rail1";
  vfOf(second).index = 1;
  EXPECT_THAT(notesOnKeptVfs({lease}, {lease, second}, kernel.inventory(), definitions), IsEmpty());
  lease.original.created = false;
  EXPECT_THAT(notesOnKeptVfs({lease}, {lease}, kernel.inventory(), definitions), IsEmpty());
}

}  // namespace
}  // namespace vfpass::plan
