#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/unused_leases.hpp"

namespace vfpass::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RestoredTest : public testing::Test {
 protected:
  RestoredTest() {
    auto& pf = kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    lease.entry = "rail0";
    lease.pf = pf.address;
    lease.pfPath = pf.path;
    vfOf(lease).index = 1;
    lease.device = pf.vfs[1].address;
    vfOf(lease).settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    lease.original.driver = "mlx5_core";
    lease.original.settings = pf.vfs[1].settings;
  }

  PhysicalFunction& pf() { return kernel.pfs.begin()->second; }
  std::vector<std::string> unrestored() { return findUnrestored({lease}, kernel.inventory()); }

  fake::FakeKernel kernel;
  Lease lease;
};

TEST_F(RestoredTest, ReportsNothingForRestoredVf) { EXPECT_THAT(unrestored(), IsEmpty()); }

TEST_F(RestoredTest, NamesDifferingDriverOverrideAndValues) {
  pf().vfs[1].driver = "";
  pf().vfs[1].driverOverride = "vfio-pci";
  pf().vfs[1].settings.vlan = Vlan{7, 0, VlanProtocol::dot1q};
  const auto lines = unrestored();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("rail0 (0000:01:00.2) is not restored: it has no driver"));
  EXPECT_THAT(lines[0], HasSubstr("driver_override is 'vfio-pci' instead of ''"));
  EXPECT_THAT(lines[0], HasSubstr("vlan is 7"));
}

TEST_F(RestoredTest, AcceptsRandomMacIfNoneWasAssigned) {
  lease.original.settings.mac = MacAddress{};
  pf().vfs[1].settings.mac = MacAddress{{0x32, 0x67, 0xa1, 0x7f, 0xb1, 0xb5}};
  EXPECT_THAT(unrestored(), IsEmpty());
  pf().vfs[1].settings.mac = MacAddress{{0x00, 0x1b, 0x21, 0x00, 0x00, 0x01}};
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("mac is 00:1b:21:00:00:01")));
}

TEST_F(RestoredTest, ReportsMacThatDiffersFromAssignedOne) {
  lease.original.settings.mac = MacAddress{{0x02, 0xaa, 0, 0, 0, 2}};
  pf().vfs[1].settings.mac = MacAddress{{0x32, 0x67, 0xa1, 0x7f, 0xb1, 0xb5}};
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("instead of 02:aa:00:00:00:02")));
  lease.original.settings.mac = MacAddress{};
  pf().vfs[1].driver = "";
  lease.original.driver = "";
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("instead of 00:00:00:00:00:00")));
}

TEST_F(RestoredTest, ReportsUnreadableValue) {
  pf().vfs[1].settings.trust.reset();
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("trust cannot be read back")));
}

TEST_F(RestoredTest, DoesNotTakeAnUnreadableOverrideForNone) {
  pf().vfs[1].locked = true;
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("driver_override cannot be read")));
}

TEST_F(RestoredTest, NamesMissingNetdevOfEthernetVf) {
  pf().vfs[1].netdevs.clear();
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("has made no netdev for it")));
  vfOf(lease).infiniband = true;  // its netdev is that of ib_ipoib, which need not be loaded
  EXPECT_THAT(unrestored(), IsEmpty());
}

TEST_F(RestoredTest, ReportsReplacedCard) {
  lease.pfSerial = "A";
  pf().serial = "B";
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("serial number B")));
}

TEST_F(RestoredTest, AcceptsRemovedVfsOnlyIfVfpassCreatedThem) {
  pf().vfs.clear();
  EXPECT_THAT(unrestored(), ElementsAre(HasSubstr("the VF no longer exists")));
  lease.original.created = true;
  EXPECT_THAT(unrestored(), IsEmpty());
}

TEST_F(RestoredTest, ComparesDriverOfFunction) {
  kernel.addFunction("0000:03:00.0", "vfio-pci");
  lease.part = LeasedFunction{};
  lease.pf = lease.device = *parsePciAddress("0000:03:00.0");
  lease.pfPath.clear();
  lease.original.driver = "nvidia";
  EXPECT_THAT(unrestored(),
              ElementsAre(HasSubstr("it has driver vfio-pci instead of driver nvidia")));
  lease.managed = true;  // then libvirt binds it
  EXPECT_THAT(unrestored(), IsEmpty());
}

}  // namespace

}  // namespace vfpass::plan
