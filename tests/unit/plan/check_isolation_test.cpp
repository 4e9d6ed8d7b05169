#include "vfpass/plan/check_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const PciAddress portPeer = *parsePciAddress("0000:39:00.0");
const PciAddress audioPeer = *parsePciAddress("0000:3a:00.1");
const PciAddress diskPeer = *parsePciAddress("0000:3b:00.0");

// The rule is the same for both kinds of device; the parameter is the device's name.
class IsolationTest : public testing::TestWithParam<const char*> {
 protected:
  IsolationTest() { device.iommuGroup = 7; }
  std::vector<Objection> found() { return checkIsolation(GetParam(), device, terms); }

  Device device;
  DeviceTerms terms;
};

TEST_P(IsolationTest, AcceptsGroupOfItsOwn) { EXPECT_THAT(found(), IsEmpty()); }

TEST_P(IsolationTest, AcceptsBridgesUnlessBoundToOtherDriver) {
  device.groupPeers = {{portPeer, 0x060400, "pcieport"}, {portPeer, 0x060400, ""}};
  EXPECT_THAT(found(), IsEmpty());
  device.groupPeers = {{portPeer, 0x060400, "shpchp"}};
  EXPECT_THAT(found(), SizeIs(1));
}

TEST_P(IsolationTest, RefusesStrangersUnlessAllowed) {
  device.groupPeers = {{audioPeer, 0x040300, ""}, {diskPeer, 0x010802, "nvme"}};
  terms.companions = {audioPeer};
  ASSERT_THAT(found(), SizeIs(1));
  EXPECT_EQ(found()[0].message, std::string(GetParam()) +
                                    " shares IOMMU group 7 with 0000:3b:00.0: the guest could "
                                    "reach those devices without IOMMU protection");
  EXPECT_THAT(found()[0].remedy, StartsWith("enable ACS"));
  terms.allow = {Allowance::sharedIommuGroup};
  EXPECT_THAT(found(), IsEmpty());
  terms.allow.clear();
  terms.companions.insert(diskPeer);
  EXPECT_THAT(found(), IsEmpty());
}

// A GPU's Direct NIC (15b3:2100) is in its group on purpose.
TEST_P(IsolationTest, AdvisesNoAcsAgainstDirectNic) {
  device.classCode = 0x030200;
  device.groupPeers = {{diskPeer, 0x088000, "mlx5_ib"}};
  terms.name = "gpu0";
  ASSERT_THAT(found(), SizeIs(1));
  EXPECT_THAT(found()[0].remedy, StartsWith("pass them to the same guest"));
  EXPECT_THAT(found()[0].remedy, HasSubstr("{name: gpu0-dma, pci: \"0000:3b:00.0\"}"));
  EXPECT_THAT(found()[0].remedy, testing::Not(HasSubstr("ACS")));
  device.groupPeers.push_back({audioPeer, 0x010802, "nvme"});
  EXPECT_THAT(found()[0].remedy, HasSubstr("ACS"));
}

TEST_P(IsolationTest, RefusesDeviceWithoutGroupWhateverIsAllowed) {
  device.iommuGroup.reset();
  terms.allow = {Allowance::sharedIommuGroup, Allowance::unsafeInterrupts};
  ASSERT_THAT(found(), SizeIs(1));
  EXPECT_THAT(found()[0].message, StartsWith(std::string(GetParam()) + " has no IOMMU group"));
  EXPECT_THAT(found()[0].remedy, HasSubstr("SMMU")) << "the hook does not read the processors";
}

TEST_P(IsolationTest, RefusesUnsafeInterruptsUnlessAllowed) {
  terms.unsafeInterrupts = true;
  ASSERT_THAT(found(), SizeIs(1));
  EXPECT_THAT(found()[0].message, StartsWith(std::string(GetParam()) + " cannot be isolated"));
  terms.allow = {Allowance::unsafeInterrupts};
  EXPECT_THAT(found(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, IsolationTest,
                         testing::Values("VF 2 (0000:01:00.4)", "PCI function 0000:3a:00.0"));

TEST(CheckVf, AcceptsOnlyCompanionsInItsGroup) {
  VirtualFunction vf;
  vf.iommuGroup = 7;
  vf.groupPeers = {{audioPeer, 0x040300, "snd_hda_intel"}};
  EXPECT_THAT(checkVf(vf, {"", {audioPeer}, {}}, {}), IsEmpty());
  vf.groupPeers.push_back({portPeer, 0x060400, "shpchp"});
  const auto found = checkVf(vf, {"", {audioPeer}, {}}, {});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].message, HasSubstr("with 0000:39:00.0:"));
  vf.groupPeers[1].driver = "pcieport";
  EXPECT_THAT(checkVf(vf, {"", {audioPeer}, {}}, {}), IsEmpty());
}

TEST(CheckLeasedVfs, CompanionsAreTheOtherLeasesAndDevices) {
  PhysicalFunction pf;
  std::vector<Lease> leases(2);
  for (unsigned index = 0; index < 2; ++index) {
    VirtualFunction vf;
    vf.index = index;
    vf.address = {0, 1, 0, static_cast<std::uint8_t>(index + 1)};
    vf.iommuGroup = 7;
    pf.vfs.push_back(vf);
    vfOf(leases[index]).index = index;
    leases[index].device = vf.address;
  }
  pf.vfs[0].groupPeers = {{pf.vfs[1].address, 0x020000, ""}, {audioPeer, 0x040300, ""}};
  EXPECT_THAT(checkLeasedVfs(pf, leases, {}, {audioPeer}), IsEmpty());
  EXPECT_THAT(checkLeasedVfs(pf, leases, {}), SizeIs(1));
  EXPECT_THAT(checkLeasedVfs(pf, {leases[0]}, {}, {audioPeer}), SizeIs(1));
}

}  // namespace
}  // namespace vfpass::plan
