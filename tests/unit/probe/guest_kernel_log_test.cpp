#include "system/guest_inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

Json read(const std::string& log) {
  const hosts::SysfsTree tree;
  tree.file("dev/kmsg", log);
  return readKernelLog(SysfsReader(tree.path()));
}

TEST(KernelLogTest, KeepsLinesAboutRdmaAndGpus) {
  EXPECT_EQ(read("3,10,500,-;NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
                 " SUBSYSTEM=pci\n DEVICE=+pci:nvidia\n"
                 "6,11,501,-;usb 1-1: new device\n"
                 "30,14,501,-;systemd[1]: Failed to start nvidia-persistenced.service\n"
                 "4,12,502,c;mlx5_core 0000:01:00.0: mlx5_cmd_out_err failed\n"
                 "6,13,503,-;pci 0000:05:00.0: BAR 2: can't assign; no space\n"),
            Json::parse(R"(["NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.",
                            "mlx5_core 0000:01:00.0: mlx5_cmd_out_err failed",
                            "pci 0000:05:00.0: BAR 2: can't assign; no space"])"));
}

TEST(KernelLogTest, LeavesOutRepeatedParameters) {
  EXPECT_EQ(read("5,1,0,-;Command line: root=/dev/vda1 nvidia.error=1 iommu=pt\n"
                 "5,2,0,-;Kernel command line: root=/dev/vda1 mlx5_core.fail=1\n"
                 "5,3,0,-;Unknown kernel command line parameters \"mlx5=error\", will be passed\n"
                 "4,4,9,-;nvidia: module verification failed: signature missing\n"
                 "4,5,9,-;mlx5_core: unknown parameter 'error' ignored\n"),
            Json::array());
}

TEST(KernelLogTest, BoundsAndEscapes) {
  std::string log;
  for (int line = 0; line < 200; ++line) {
    log += "6,1,1,-;mlx5 " + std::to_string(line) + "\n";
  }
  const Json lines = read(log);
  ASSERT_EQ(lines.size(), 48U);
  EXPECT_EQ(lines.back(), "mlx5 199") << "the last ones";
  const std::string odd = read("6,1,1,-;mlx5 \x1b[31m\xff" + std::string(5000, 'x') + "\n")[0];
  EXPECT_LT(odd.size(), 270U);
  EXPECT_THAT(odd, testing::StartsWith("mlx5 \\x1b[31m\\xffxxx"));
}

TEST(KernelLogTest, NullIfNotReadable) {
  const hosts::SysfsTree empty;
  EXPECT_EQ(readKernelLog(SysfsReader(empty.path())), nullptr);
  EXPECT_EQ(readErrors(SysfsReader(empty.path())).at("kernel_log"), nullptr);
  EXPECT_EQ(read(""), Json::array());
  EXPECT_EQ(read("no record mlx5\n"), Json::array());
}

}  // namespace
}  // namespace vfpass::probe
