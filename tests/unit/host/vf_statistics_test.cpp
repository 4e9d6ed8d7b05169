#include "vfpass/host/device_statistics.hpp"

#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

constexpr std::chrono::milliseconds statisticsDeadline{5000};

PhysicalFunction pfWithTwoVfs() {
  PhysicalFunction pf;
  pf.address = {0, 0x3b, 0, 0};
  pf.driver = "ice";
  pf.netdevs = {{"lo", 1}};  // exists everywhere and has no VFs
  pf.vfs.resize(2);
  pf.vfs[1].index = 1;
  return pf;
}

TEST(VfStatistics, ReadsFilesOfDriverThatHasThem) {
  const hosts::SysfsTree tree;
  const std::string pf = tree.function("0000:3b:00.0");
  tree.file(pf + "/sriov/0/stats/rx_bytes", "17\n");
  tree.file(pf + "/sriov/0/stats/tx_errors", "3\n");
  tree.file(pf + "/sriov/0/stats/tx_bytes", "unknown\n");
  tree.file(pf + "/sriov/0/stats/Own{}", "5\n");
  const auto table = readVfStatistics(Root(tree.path()), pfWithTwoVfs(), statisticsDeadline);
  EXPECT_EQ(table, (std::map<unsigned, VfStatistics>{{0, {{"rx_bytes", 17}, {"tx_errors", 3}}}}));
}

// OFED for mlx5 has one file with all counters in that place.
TEST(VfStatistics, IgnoresFileInsteadOfDirectory) {
  const hosts::SysfsTree tree;
  tree.file(tree.function("0000:3b:00.0") + "/sriov/0/stats", "tx_packets : 0\n");
  EXPECT_TRUE(readVfStatistics(Root(tree.path()), pfWithTwoVfs(), statisticsDeadline).empty());
}

TEST(VfStatistics, AsksKernelOfRunningSystem) {
  EXPECT_TRUE(readVfStatistics(Root("/"), pfWithTwoVfs(), statisticsDeadline).empty());
  PhysicalFunction gone = pfWithTwoVfs();
  gone.netdevs[0].index = 0x7ffffff0;
  EXPECT_TRUE(readVfStatistics(Root("/"), gone, statisticsDeadline).empty());
}

}  // namespace
}  // namespace vfpass::host
