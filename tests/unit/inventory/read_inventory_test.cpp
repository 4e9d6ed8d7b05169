#include "vfpass/inventory/read_inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/error.hpp"
#include "vfpass/inventory/model_names.hpp"

namespace vfpass::inventory {
namespace {

constexpr const char* database =
    "15b3  Mellanox Technologies\n"
    "\t101d  MT2892 Family [ConnectX-6 Dx]\n";

TEST(ModelNames, FindsVendorAndDevice) {
  const hosts::SysfsTree tree;
  tree.file("pci.ids", database);
  ModelNames names((tree.path() / "pci.ids").string());
  EXPECT_EQ(names.find(0x15b3, 0x101d), "Mellanox Technologies MT2892 Family [ConnectX-6 Dx]");
  EXPECT_EQ(names.find(0x15b3, 0xfffe), "");
  EXPECT_EQ(names.find(0xfffe, 0xfffe), "");
}

TEST(ModelNames, AreEmptyWithoutDatabase) {
  ModelNames names("/nonexistent/pci.ids");
  EXPECT_EQ(names.find(0x15b3, 0x101d), "");
}

TEST(ModelNames, AreEmptyForDamagedDatabase) {
  const hosts::SysfsTree tree;
  tree.file("pci.ids", std::string(database) + "zzzz what is this\n\t\t\t\n");
  ModelNames names((tree.path() / "pci.ids").string());
  EXPECT_EQ(names.find(0x15b3, 0x101d), "");
  EXPECT_EQ(names.find(0x15b3, 0x101d), "");
}

// Which of this machine's databases has the name depends on what is installed.
TEST(ModelNames, FindsNamesInTheDatabasesOfThisMachine) {
  ModelNames names;
  EXPECT_THAT(names.find(0x8086, 0x1572), testing::HasSubstr("X710"));
  EXPECT_EQ(names.find(0xfffe, 0xfffe), "");
}

TEST(ModelNames, MissingLibraryIsReported) {
  try {
    const ModelNames names({}, "libvfpass-missing.so.1");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot load libvfpass-missing.so.1: "));
    EXPECT_THAT(error.remedy(), testing::HasSubstr("libpci3"));
  }
}

TEST(ReadInventory, ReadsCapturedHost) {
  const hosts::SysfsTree tree;
  tree.pf(8);
  tree.vf(0);
  tree.group("0000:01:00.1", 4);
  const Inventory inventory = readInventory(tree.path());
  ASSERT_EQ(inventory.pfs.size(), 1U);
  EXPECT_EQ(inventory.pfs[0].vfs.size(), 1U);
  EXPECT_TRUE(inventory.iommuPresent);
  EXPECT_FALSE(inventory.unsafeInterrupts);
}

TEST(ReadInventory, HasOnlyNamedFunctionsThatExist) {
  const hosts::SysfsTree tree;
  tree.pf(8);
  tree.function("0000:02:00.0", "0x030200");
  EXPECT_TRUE(readInventory(tree.path()).functions.empty());
  const Inventory inventory = readInventory(tree.path(), {{0, 2, 0, 0}, {0, 9, 0, 0}});
  ASSERT_EQ(inventory.functions.size(), 1U);
  EXPECT_EQ(inventory.functions[0].classCode, 0x030200U);
  EXPECT_NE(findFunction(inventory, {0, 2, 0, 0}), nullptr);
  EXPECT_EQ(findFunction(inventory, {0, 9, 0, 0}), nullptr);
}

TEST(ReadInventory, ListOfPfsHasIdentityAndNumberOfVfs) {
  const hosts::SysfsTree tree;
  tree.pf(8);
  tree.vf(0);
  tree.vf(1);
  const Inventory whole = readInventory(tree.path());
  const Inventory list = readPfList(host::Root(tree.path()));
  ASSERT_EQ(list.pfs.size(), 1U);
  EXPECT_EQ(list.pfs[0].address, whole.pfs[0].address);
  EXPECT_EQ(list.pfs[0].totalVfs, 8U);
  ASSERT_EQ(list.pfs[0].vfs.size(), 2U);
  EXPECT_EQ(list.pfs[0].vfs[1].index, 1U);
  EXPECT_EQ(list.pfs[0].vfs[1].address, whole.pfs[0].vfs[1].address);
  EXPECT_EQ(list.iommuPresent, whole.iommuPresent);
}

TEST(ReadInventory, OtherNicsAreThoseWithoutSriov) {
  const hosts::SysfsTree tree;
  tree.pf(8);
  tree.vf(0);
  const auto add = [&](const std::string& address, const std::string& classCode) {
    const std::string folder = tree.function(address);
    tree.file(folder + "/uevent", "PCI_CLASS=" + classCode + "\nPCI_ID=15B3:1021\n");
    return folder;
  };
  add("0000:02:00.0", "20000");
  add("0000:03:00.0", "30200");
  const std::string list = "MODL=C7:SMDL=SW_MNG";
  tree.file(add("0000:04:00.0", "20700") + "/vpd",
            "\x90" + std::string(1, static_cast<char>(list.size() + 3)) + std::string(1, '\0') +
                "VA" + static_cast<char>(list.size()) + list + "\x78");
  const host::Root root(tree.path());
  const auto nics = readOtherNics(root, readPfList(host::Root(tree.path())));
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_EQ(toString(nics[0].address), "0000:02:00.0");
  EXPECT_EQ(nics[0].role, FunctionRole::nic);
  EXPECT_EQ(toString(nics[1].address), "0000:04:00.0");
  EXPECT_EQ(nics[1].role, FunctionRole::nvlinkManagement);
}

TEST(ReadInventory, ListOfVfsHasDriverAndGroup) {
  const hosts::SysfsTree tree;
  tree.pf(8);
  tree.vf(0);
  tree.group("0000:01:00.1", 4);
  const Inventory whole = readInventory(tree.path());
  const Inventory list = readVfList(host::Root(tree.path()));
  ASSERT_EQ(list.pfs.size(), 1U);
  ASSERT_EQ(list.pfs[0].vfs.size(), 1U);
  EXPECT_EQ(list.pfs[0].vfs[0].driver, whole.pfs[0].vfs[0].driver);
  EXPECT_EQ(list.pfs[0].vfs[0].iommuGroup, 4U);
  EXPECT_TRUE(list.pfs[0].vfs[0].groupPeers.empty());
}

TEST(ReadInventory, ListOfVfsHasPeersInTheGroup) {
  const hosts::SysfsTree tree;
  tree.pf(8);
  tree.vf(0);
  tree.vf(1);
  tree.vf(2);
  tree.function("0000:02:00.0", "0x030200");
  tree.group("0000:01:00.1", 4);
  tree.group("0000:02:00.0", 4);
  tree.group("0000:01:00.2", 5);
  const auto list = readVfList(host::Root(tree.path())).pfs.at(0).vfs;
  const auto whole = readInventory(tree.path()).pfs.at(0).vfs;
  ASSERT_EQ(list.size(), 3U);
  EXPECT_THAT(list[0].groupPeers, testing::ElementsAre(GroupPeer{{0, 2, 0, 0}, 0x030200, ""}));
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].iommuGroup, whole[i].iommuGroup);
    EXPECT_EQ(list[i].groupPeers, whole[i].groupPeers);
  }
}

TEST(ReadInventory, IsEmptyForEmptyTree) {
  const hosts::SysfsTree tree;
  EXPECT_TRUE(readInventory(tree.path()).pfs.empty());
}

}  // namespace
}  // namespace vfpass::inventory
