#include "vfpass/base/kernel_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass {
namespace {

TEST(KernelRecordTest, TextIsWhatFollowsTheSemicolon) {
  EXPECT_EQ(kernelText("6,339,5140900,-;NET: Registered; protocol, 10"),
            "NET: Registered; protocol, 10");
  EXPECT_EQ(kernelText("3,1,2,c,caller=T1;text"), "text") << "CONFIG_PRINTK_CALLER";
  EXPECT_EQ(kernelText("0,1,2,-;"), "");
}

TEST(KernelRecordTest, LinesOfProgramsAndPropertiesHaveNone) {
  for (const char* line :
       {"30,14,501,-;systemd[1]: mlx5 failed", "8,1,1,-;user", "14,1,1,-;user", " SUBSYSTEM=pci",
        " DEVICE=+pci:0000:01:00.0", " 3,1,1,-;property", "-1,1,1,-;x",
        "99999999999999999999,1,1,-;x", ",1,1,-;x", "3;1,2", "no record", "3,1,1", ";", ""}) {
    EXPECT_EQ(kernelText(line), "") << line;
  }
}

TEST(KernelRecordTest, RepeatedParametersExplainNothing) {
  for (const char* text :
       {"Command line: BOOT_IMAGE=/vmlinuz iommu=pt mlx5_core.fail=1",
        "Kernel command line: root=/dev/vda1 nvidia.error=1",
        "Unknown kernel command line parameters \"mlx5.error\", will be passed to user space.",
        "Malformed early option 'iommu'", "Setting dangerous option invalid - tainting kernel",
        "    mlx5_core.error=fail", "mlx5_core: unknown parameter 'error' ignored",
        "nvidia: module verification failed: signature and/or required key missing - tainting "
        "kernel",
        "mlx5_core 0000:03:00.0: mlx5_pci_vsc_init:62:(pid 9): Failed to get valid vendor specific "
        "ID"}) {
    EXPECT_TRUE(explainsNothing(text)) << text;
  }
}

TEST(KernelRecordTest, ComplaintsMayExplain) {
  for (const char* text :
       {"mlx5_core 0000:01:00.0: mlx5_cmd_out_err failed, status=3",
        "mlx5_core: `x' invalid for parameter `prof_sel'",
        "iommu: Default domain type: Passthrough (set via kernel command line)",
        "NVRM: Xid (PCI:0000:05:00): 79, pid=7", "DMAR: DRHD base=1 fault", "x", "=", ""}) {
    EXPECT_FALSE(explainsNothing(text)) << text;
  }
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(NodeSet, ParsesRangesListsAndExclusions) {
  EXPECT_THAT(parseNodeSet("0"), Optional(ElementsAre(0)));
  EXPECT_THAT(parseNodeSet("0-3,8"), Optional(ElementsAre(0, 1, 2, 3, 8)));
  EXPECT_THAT(parseNodeSet("0-3,^2"), Optional(ElementsAre(0, 1, 3)));
  EXPECT_THAT(parseNodeSet(" 1, 3 "), Optional(ElementsAre(1, 3)));
  EXPECT_THAT(parseNodeSet(""), Optional(IsEmpty()));
}

TEST(NodeSet, RejectsInvalidSets) {
  for (const char* text : {"x", "3-1", "1-", "-1", "^1", "1,,2", "99999", "0-99999"}) {
    EXPECT_FALSE(parseNodeSet(text)) << text;
  }
}

TEST(NodeSet, FormatsLikeLibvirt) {
  for (const char* text : {"", "0", "0-3,8", "1,3,5,7", "0-1,3-4,1023"}) {
    EXPECT_EQ(formatNodeSet(*parseNodeSet(text)), text);
  }
}

TEST(NodeSet, ReadsMasksOfTheKernel) {
  EXPECT_EQ(formatNodeSet(cpusInMask("0000000f")), "0-3");
  EXPECT_EQ(formatNodeSet(cpusInMask("00000001,80000000")), "31-32");
  EXPECT_EQ(formatNodeSet(cpusInMask("")), "");
  EXPECT_EQ(cpusInMask(std::string(1000, 'f')).size(), 1024U);
}

}  // namespace

}  // namespace vfpass
