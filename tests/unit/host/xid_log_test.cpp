#include "vfpass/host/xid_log.hpp"

#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

// A regular file returns the whole log as one record, with the number of its first line.
class XidLogTest : public testing::Test {
 protected:
  std::optional<XidLog> read(const std::string& text) {
    tree_.file(folder_ + "/vendor", "0x10de\n");
    tree_.file("dev/kmsg", text);
    return readXidLog(Root(tree_.path()), PciAddress{0, 0x65, 0, 0});
  }
  std::vector<Xid> xids(const std::string& text) { return read(text).value().xids; }

  hosts::SysfsTree tree_;
  std::string folder_ = tree_.function("0000:65:00.0", "0x030200");
};

TEST_F(XidLogTest, HasThoseOfThisGpuThatMeanHardware) {
  const auto log = read(
      "4,40,7,-;NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
      "4,41,7,-;NVRM: Xid (PCI:0000:65:00.0): 48, Double Bit ECC Error\n"
      "4,42,7,-;NVRM: Xid (PCI:0000:65:00): 31, pid=4711, MMU Fault\n"
      "4,43,7,-;NVRM: Xid (PCI:0000:66:00): 79, GPU has fallen off the bus.\n");
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->readable);
  EXPECT_EQ(log->first, 40U);
  EXPECT_EQ(log->next, 41U);
  EXPECT_EQ(log->xids, (std::vector<Xid>{{40, 79}, {40, 48}}));
}

TEST_F(XidLogTest, BelievesOnlyTheDriver) {
  const std::string xid = "NVRM: Xid (PCI:0000:65:00): 79, GPU";
  EXPECT_TRUE(xids("4,1,7,-;usb 1-1: Product: " + xid + "\n").empty());
  EXPECT_TRUE(xids("12,1,7,-;" + xid + "\n").empty()) << "logged by a program";
  EXPECT_TRUE(xids("4,1,7,-;line\n SUBSYSTEM=" + xid + "\n").empty());
  EXPECT_TRUE(xids("4,1,7,-;NVRM: Xid (PCI:0000:65:00 79, GPU\n").empty());
  EXPECT_TRUE(xids("4,1,7,-;NVRM: Xid (PCI:0000:65:00): 99999999999999999999\n").empty());
  EXPECT_TRUE(xids(";\n,\n").empty());
  EXPECT_EQ(xids("4,1,7,-;" + xid + "\n").size(), 1U);
}

TEST_F(XidLogTest, IsOfGpusOfNvidiaAndMayBeUnreadable) {
  EXPECT_FALSE(readXidLog(Root(tree_.path()), PciAddress{0, 0x65, 0, 0}));
  tree_.file(folder_ + "/vendor", "0x10de\n");
  const auto log = readXidLog(Root(tree_.path()), PciAddress{0, 0x65, 0, 0});
  ASSERT_TRUE(log);
  EXPECT_FALSE(log->readable);
}

}  // namespace
}  // namespace vfpass::host
