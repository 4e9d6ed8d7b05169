#include "vfpass/host/root.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

using hosts::SysfsTree;
using testing::ElementsAre;

TEST(Folder, ReadsFilesAndLinks) {
  const SysfsTree tree;
  tree.file("sys/devices/a/uevent", "DRIVER=x\n");
  tree.file("sys/devices/a/number", " 0x1f\n");
  tree.file("sys/devices/a/net/eth0/ifindex", "7\n");
  tree.file("sys/devices/a/net/eth1/ifindex", "8\n");
  tree.link("sys/devices/a/driver", "sys/bus/pci/drivers");
  const Folder folder(Root(tree.path()), "sys/devices/a");
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder.readText("uevent"), "DRIVER=x\n");
  EXPECT_EQ(folder.readNumber("number"), 0x1fU);
  EXPECT_EQ(folder.readNumber("net/eth0/ifindex"), 7U);
  EXPECT_EQ(folder.readBytes("uevent", 2, 4), "IVER");
  EXPECT_EQ(folder.readBytes("uevent", 7, 100), "x\n");
  EXPECT_THAT(folder.list("net"), ElementsAre("eth0", "eth1"));
  EXPECT_THAT(folder.list(".", "num"), ElementsAre("number"));
  EXPECT_EQ(folder.linkName("driver"), "drivers");
  EXPECT_EQ(folder.readText("missing"), std::nullopt);
}

TEST(Folder, FollowsNoLinkInCapturedTree) {
  const SysfsTree tree;
  tree.file("sys/devices/a/here", "1\n");
  tree.file("sys/devices/b/file", "2\n");
  tree.link("sys/devices/a/inside", "sys/devices/b/file");
  tree.link("sys/devices/a/directory", "sys/devices/b");
  std::filesystem::create_symlink("/etc/hostname", tree.path() / "sys/devices/a/outside");
  const Root root(tree.path());
  const Folder folder(root, "sys/devices/a");
  EXPECT_EQ(folder.readText("inside"), std::nullopt);
  EXPECT_EQ(folder.readText("outside"), std::nullopt);
  EXPECT_EQ(folder.readText("directory/file"), std::nullopt);
  EXPECT_EQ(folder.readText("../b/file"), std::nullopt);
  EXPECT_FALSE(Folder(folder, "directory"));
  EXPECT_EQ(folder.linkTarget("outside"), "/etc/hostname");
}

TEST(Folder, ReturnsNothingForMissingDirectory) {
  const SysfsTree tree;
  const Folder folder(Root(tree.path()), "sys/devices/missing");
  EXPECT_FALSE(folder);
  EXPECT_EQ(folder.readText("uevent"), std::nullopt);
  EXPECT_TRUE(folder.list(".").empty());
  EXPECT_EQ(folder.linkTarget("driver"), std::nullopt);
}

// A captured tree can have one, and reading it can have effects.
TEST(Folder, ReadsNoDevice) {
  const Folder folder(Root(), "dev");
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder.readText("zero"), std::nullopt);
  EXPECT_EQ(folder.readBytes("zero", 0, 8), "");
  EXPECT_EQ(Root().readText("dev/zero"), std::nullopt);
}

TEST(Folder, DoesNotBlockOnFifo) {
  const SysfsTree tree;
  ASSERT_EQ(::mkfifo((tree.path() / "sys/fifo").c_str(), 0600), 0);
  const Folder folder(Root(tree.path()), "sys");
  EXPECT_EQ(folder.readText("fifo"), std::nullopt);
  EXPECT_EQ(folder.readBytes("fifo", 0, 8), "");
}

}  // namespace
}  // namespace vfpass::host
