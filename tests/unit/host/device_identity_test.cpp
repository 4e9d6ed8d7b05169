#include "vfpass/host/device_identity.hpp"

#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/hand_over.hpp"

namespace vfpass::host {
namespace {

const PciAddress slotAddress{0, 1, 0, 0};

// A PF with one VF, and a function of another card with the same IDs.
class DeviceIdentityTest : public testing::Test {
 protected:
  DeviceIdentityTest() {
    tree_.pf(4);
    tree_.vf(0);
    tree_.function("0000:02:00.0");
  }
  // Vital product data that has only this serial number.
  void serial(const std::string& address, const std::string& number) {
    const auto length = static_cast<char>(number.size());
    const std::string fields = std::string("SN") + length + number;
    tree_.file(hosts::SysfsTree::folderOf(address) + "/vpd",
               std::string("\x90") + static_cast<char>(fields.size()) + '\0' + fields + "\x78");
  }
  // Configuration space that has only a capability with this serial number.
  void capability(const std::string& address, const std::string& number) {
    std::string config(4096, '\0');
    config.replace(0x100, 4, std::string("\x03\x00\x01\x00", 4));
    config.replace(0x104, 8, number);
    tree_.file(hosts::SysfsTree::folderOf(address) + "/config", config);
  }
  std::string read(const PciAddress& function,
                   const std::optional<std::string>& serial = std::nullopt) {
    return readIdentity(Root(tree_.path()), function, serial, std::chrono::seconds(5));
  }
  std::vector<PciAddress> find(const std::string& identity) {
    return functionsWithIdentities(Root(tree_.path()), {identity})[identity];
  }

  hosts::SysfsTree tree_;
};

TEST_F(DeviceIdentityTest, HasTheSerialNumberOfTheCard) {
  EXPECT_EQ(read(slotAddress), "");
  serial("0000:01:00.0", "MT1");
  EXPECT_EQ(read(slotAddress), "15b3:101d function 0 serial MT1");
  EXPECT_EQ(read({0, 1, 0, 1}), "15b3:101d function 0 vf 0 serial MT1");
  EXPECT_EQ(read(slotAddress, "MT2"), "15b3:101d function 0 serial MT2") << "not read again";
  EXPECT_EQ(read(slotAddress, ""), "");
  EXPECT_EQ(read({0, 9, 0, 0}), "");
}

// A VF that its plan creates later has the serial number that the caller knows of its PF.
TEST_F(DeviceIdentityTest, IsEmptyForAFunctionThatDoesNotExist) {
  EXPECT_EQ(read({0, 1, 0, 3}, "MT1"), "");
  EXPECT_EQ(identityOfVf("15b3:101d function 0 serial MT1", 2),
            "15b3:101d function 0 vf 2 serial MT1");
  EXPECT_EQ(identityOfVf("", 2), "");
}

TEST_F(DeviceIdentityTest, PrefersTheCapability) {
  serial("0000:01:00.0", "MT1");
  capability("0000:01:00.0", "\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(read(slotAddress), "15b3:101d function 0 device-serial 01-02-03-04-05-06-07-08");
}

TEST_F(DeviceIdentityTest, IsFoundInEverySlot) {
  serial("0000:01:00.0", "MT1");
  serial("0000:02:00.0", "MT2");
  EXPECT_EQ(find(read(slotAddress)), std::vector{slotAddress});
  EXPECT_EQ(find(read({0, 1, 0, 1})), (std::vector{PciAddress{0, 1, 0, 1}}));
  serial("0000:02:00.0", "MT1");
  EXPECT_EQ(find(read(slotAddress)), (std::vector{slotAddress, PciAddress{0, 2, 0, 0}}));
  EXPECT_TRUE(find("15b3:101d function 1 serial MT1").empty());
  EXPECT_TRUE(find("15b3:1021 function 0 serial MT1").empty());
  EXPECT_TRUE(find("").empty());
}

}  // namespace
}  // namespace vfpass::host
