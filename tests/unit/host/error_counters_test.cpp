#include "vfpass/host/error_counters.hpp"

#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

class ErrorCountersTest : public testing::Test {
 protected:
  void write(const std::string& fatal, const std::string& other, const std::string& folder) {
    tree_.file(folder + "/aer_dev_fatal", fatal);
    tree_.file(folder + "/aer_dev_nonfatal", other);
  }
  std::optional<ErrorCounts> read() {
    return readErrorCounts(Root(tree_.path()), PciAddress{0, 1, 0, 1});
  }

  hosts::SysfsTree tree_;
  std::string directory_ = tree_.function("0000:01:00.1");
  std::string port_ = "sys/devices/pci0000:00/0000:00:01.0";
};

// A guest can make a completion timeout a fatal error: the severity is a register.
TEST_F(ErrorCountersTest, DistinguishTypesAndNotSeverities) {
  write("Undefined 0\nDLP 1\nTLP 2\nCmpltTO 5\nTOTAL_ERR_FATAL 8\n",
        "Undefined 0\nUncorrIntErr 3\nUnsupReq 4\nTOTAL_ERR_NONFATAL 7\n", directory_);
  EXPECT_EQ(read(), (ErrorCounts{6, 9, 0}));
  tree_.file(directory_ + "/aer_dev_correctable", "RxErr 1\nBadTLP 1\nTOTAL_ERR_COR 2\n");
  EXPECT_EQ(read(), (ErrorCounts{6, 9, 2}));
}

TEST_F(ErrorCountersTest, HaveThoseOfTheLinkThatThePortHasSeen) {
  tree_.link("sys/bus/pci/devices/0000:00:01.0", port_);
  write("SDES 1\nACSViol 2\nTOTAL_ERR_FATAL 3\n", "TLP 1\nTOTAL_ERR_NONFATAL 1\n", port_);
  EXPECT_EQ(read(), (ErrorCounts{2, 0, 0}));
  write("DLP 1\nTOTAL_ERR_FATAL 1\n", "TOTAL_ERR_NONFATAL 0\n", directory_);
  EXPECT_EQ(read(), (ErrorCounts{3, 0, 0}));
  tree_.link(directory_ + "/physfn", tree_.function("0000:01:00.0"));
  EXPECT_EQ(read(), (ErrorCounts{1, 0, 0})) << "a VF shares the port with other guests";
}

TEST_F(ErrorCountersTest, AreNotObservableWithoutBothSums) {
  EXPECT_FALSE(read());
  write("TOTAL_ERR_FATAL 3\n", "UnsupReq 4\n", directory_);
  EXPECT_FALSE(read());
  write("TOTAL_ERR_FATAL many\n", "TOTAL_ERR_NONFATAL 4\n", directory_);
  EXPECT_FALSE(read());
}

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
