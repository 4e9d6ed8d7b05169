#include "vfpass/doctor/kernel_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const PciAddress nic = *parsePciAddress("0000:03:00.0");

struct Known {
  const char* text;
  KernelTopic topic;
  bool serious;
  const char* device;  ///< empty: none
};

// Texts of the kernel, of mlx5 and of NVIDIA's driver, as people have posted them.
class KernelLines : public testing::TestWithParam<Known> {};

TEST_P(KernelLines, HaveTopicAndDevice) {
  const auto line = readKernelLine(GetParam().text);
  ASSERT_TRUE(line) << GetParam().text;
  EXPECT_EQ(line->topic, GetParam().topic);
  EXPECT_EQ(line->serious, GetParam().serious);
  if (*GetParam().device == '\0') {
    EXPECT_THAT(line->devices, IsEmpty());
  } else {
    EXPECT_TRUE(line->devices.contains(*parsePciAddress(GetParam().device)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Known, KernelLines,
    testing::Values(
        Known{"DMAR: [DMA Read NO_PASID] Request device [03:00.0] fault addr 0xbe000000 [fault "
              "reason 0x06] PTE Read access is not set",
              KernelTopic::iommuFault, true, "0000:03:00.0"},
        Known{"DMAR: [INTR-REMAP] Request device [03:00.2] fault index 0x8000 [fault reason 0x26]",
              KernelTopic::iommuFault, true, "0000:03:00.2"},
        Known{"AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:c1:00.0 domain=0x0012 "
              "address=0xd0000000 flags=0x0020]",
              KernelTopic::iommuFault, true, "0000:c1:00.0"},
        Known{"vfio-pci 0000:c1:00.1: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012]",
              KernelTopic::iommuFault, true, "0000:c1:00.1"},
        Known{"vfio-pci 0000:03:00.0: Device is ineligible for IOMMU domain attach due to platform "
              "RMRR requirement.  Contact your platform vendor.",
              KernelTopic::iommuFault, true, "0000:03:00.0"},
        Known{"DMAR: IOMMU disabled", KernelTopic::iommu, false, ""},
        Known{"[    0.012345] DMAR-IR: Not enabling interrupt remapping", KernelTopic::iommu, false,
              ""},
        Known{"mlx5_core 0000:b0:00.0: not enough MMIO resources for SR-IOV",
              KernelTopic::resources, true, "0000:b0:00.0"},
        Known{"mlx5_core 0000:03:00.0: SR-IOV: bus number out of range", KernelTopic::resources,
              true, "0000:03:00.0"},
        Known{"pci 0000:03:00.0: VF BAR 0 [mem size 0x02000000 64bit pref]: can't assign; no space",
              KernelTopic::resources, false, "0000:03:00.0"},
        Known{"mlx5_core 0000:03:00.0: poll_health:737:(pid 0): device's health compromised - "
              "reached miss count",
              KernelTopic::mlx5, true, "0000:03:00.0"},
        Known{"mlx5_core 0000:03:00.0: poll_health:752:(pid 0): Fatal error 1 detected",
              KernelTopic::mlx5, true, "0000:03:00.0"},
        Known{"mlx5_core 0000:03:00.0: Cannot allocate memory for the page", KernelTopic::mlx5,
              true, "0000:03:00.0"},
        Known{"mlx5_core 0000:03:00.0: mlx5_pcie_event:301:(pid 5): Detected insufficient power on "
              "the PCIe slot (27W).",
              KernelTopic::mlx5, true, "0000:03:00.0"},
        Known{"mlx5_core 0000:03:00.0: mlx5_cmd_out_err:838:(pid 9): SET_VPORT failed, status bad",
              KernelTopic::mlx5, false, "0000:03:00.0"},
        Known{"pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:03:00.0",
              KernelTopic::link, true, "0000:03:00.0"},
        Known{"nvidia 0000:04:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), "
              "type=Transaction Layer, (Requester ID)",
              KernelTopic::link, true, "0000:04:00.0"},
        Known{"mlx5_core 0000:03:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), "
              "type=Transaction Layer, (Requester ID)",
              KernelTopic::link, true, "0000:03:00.0"},
        Known{"pcieport 0000:00:01.0: AER: Multiple Corrected error received: 0000:03:00.0",
              KernelTopic::link, false, "0000:03:00.0"},
        Known{"pcieport 0000:00:01.0: AER: Uncorrectable (Non-Fatal) error message received from "
              "0000:03:00.0",
              KernelTopic::link, true, "0000:03:00.0"},
        Known{"mlx5_core 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
              KernelTopic::link, false, "0000:03:00.0"},
        Known{"pci 0000:03:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 "
              "link at 0000:02:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
              KernelTopic::link, false, "0000:03:00.0"},
        Known{"NVRM: Xid (PCI:0000:04:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off "
              "the bus.",
              KernelTopic::gpu, true, "0000:04:00.0"},
        Known{"NVRM: Xid (PCI:0000:04:00): 31, pid=4711, name=python3, Ch 00000008, MMU Fault",
              KernelTopic::gpu, false, "0000:04:00.0"},
        Known{"NVRM: Xid (PCI:0000:04:00): 119, Timeout after 6s of waiting for RPC response",
              KernelTopic::gpu, true, "0000:04:00.0"},
        Known{"vfio-pci 0000:04:00.0: not ready 65535ms after FLR; giving up", KernelTopic::reset,
              true, "0000:04:00.0"},
        Known{"vfio-pci 0000:04:00.0: Unable to change power state from D3cold to D0, device "
              "inaccessible",
              KernelTopic::reset, true, "0000:04:00.0"},
        Known{"nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",
              KernelTopic::peerMemory, false, ""},
        Known{"vfio_pin_pages_remote: RLIMIT_MEMLOCK (65536) exceeded", KernelTopic::memoryLock,
              false, ""}));

TEST(KernelLog, OrdinaryLinesAreNoneOfIts) {
  for (const char* text :
       {"pcieport 0000:00:01.0: AER: enabled with IRQ 26",
        "mlx5_core 0000:03:00.0: firmware version: 28.39.2048",
        "mlx5_core 0000:03:00.0: Port module event: module 0, Cable plugged",
        "pci 0000:03:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        "vfio-pci 0000:04:00.0: not ready 1023ms after FLR; waiting",
        "iommu: Default domain type: Translated", "DMAR: DRHD: handling fault status reg 3", ""}) {
    EXPECT_FALSE(readKernelLine(text)) << text;
  }
}

TEST(KernelLog, RepeatedParametersAreNoneOfIts) {
  for (const char* text :
       {"Command line: root=/dev/vda1 modules_load=nvidia_peermem",
        "[    0.012611] Kernel command line: root=/dev/vda1 nvidia_peermem.x=1",
        "Unknown kernel command line parameters \"nvidia_peermem=1\", will be passed to user "
        "space.",
        "nvidia_peermem: unknown parameter 'x' ignored",
        "nvidia_peermem: module verification failed: signature and/or required key missing"}) {
    EXPECT_FALSE(readKernelLine(text)) << text;
  }
  EXPECT_TRUE(
      readKernelLine("iommu: Default domain type: Passthrough (set via kernel command line)"));
}

TEST(KernelLog, TextIsPrintableAndBounded) {
  const auto line =
      readKernelLine("mlx5_core 0000:03:00.0: health \x1b[2J" + std::string(9000, 'x'));
  ASSERT_TRUE(line);
  EXPECT_THAT(line->text, AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1b")));
  EXPECT_LT(line->text.size(), 300U);
  EXPECT_LE(readKernelLines(std::string(4, '\n') +
                            [] {
                              std::string all;
                              for (int i = 0; i < 5000; ++i) {
                                all += "mlx5_core 0000:03:00.0: health\n";
                              }
                              return all;
                            }())
                .size(),
            200U);
}

TEST(KernelLog, KeepsLastLinesOfKernelOnly) {
  const hosts::SysfsTree tree;
  std::string log = "6,1,1,-;mlx5_core 0000:03:00.0: firmware version: 28.39.2048\n";
  for (int i = 0; i < 20; ++i) {
    log += "3," + std::to_string(i) + ",5,-;mlx5_core 0000:03:00.0: health " + std::to_string(i) +
           "\n SUBSYSTEM=pci\n";
  }
  log += "12,99,6,-;mlx5_core 0000:03:00.0: health from a process\n";
  log += "3,100,7,c;NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.\n";
  tree.file("dev/kmsg", log);
  const auto kept = relevantKernelLog(host::Root(tree.path()));
  EXPECT_EQ(kept,
            "mlx5_core 0000:03:00.0: health 15\nmlx5_core 0000:03:00.0: health 16\n"
            "mlx5_core 0000:03:00.0: health 17\nmlx5_core 0000:03:00.0: health 18\n"
            "mlx5_core 0000:03:00.0: health 19\n"
            "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.\n");
  tree.remove("dev/kmsg");
  EXPECT_EQ(relevantKernelLog(host::Root(tree.path())), std::nullopt);
}

TEST(KernelLog, KeepsSeriousLinesLongest) {
  const hosts::SysfsTree tree;
  const std::string fatal =
      "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:03:00.0\n";
  std::string log = "3,1,1,-;" + fatal;
  for (int i = 0; i < 10; ++i) {
    log += "4,2,2,-;pcieport 0000:00:01.0: AER: Corrected error received: 0000:03:00.0\n";
  }
  for (int i = 0; i < 256; ++i) {
    log += "4,3,3,-;" + toString(PciAddress{0, static_cast<std::uint8_t>(i), 0, 0}) +
           ": BAR 0: no space\n";
  }
  tree.file("dev/kmsg", log);
  const auto kept = relevantKernelLog(host::Root(tree.path())).value();
  EXPECT_TRUE(kept.starts_with(fatal)) << kept;
  EXPECT_EQ(std::ranges::count(kept, '\n'), 200);
  EXPECT_THAT(kept, HasSubstr("0000:ff:00.0: BAR 0"));
}

TEST(KernelLog, LastSeriousLineExplains) {
  const auto lines = readKernelLines(
      "mlx5_core 0000:03:00.0: health 1\nmlx5_core 0000:03:00.0: health 2\n"
      "mlx5_core 0000:03:00.0: SET failed\nmlx5_core 0000:05:00.0: health 3\n");
  EXPECT_EQ(lastLineAbout(lines, {nic}), "mlx5_core 0000:03:00.0: health 2");
  EXPECT_EQ(lastLineAbout(lines, {*parsePciAddress("0000:09:00.0")}), "");
}

class KernelLogCheck : public testing::Test {
 protected:
  void log(const std::string& lines) const { host.file("vfpass/kernel-log", lines); }
  [[nodiscard]] std::vector<std::string> seen() const {
    std::vector<std::string> texts;
    for (const Finding& each : host.findings("kernel-log")) {
      texts.push_back(std::string(toString(each.outcome)) + " " + each.subject + ": " + each.seen);
    }
    return texts;
  }

  DoctoredHost host;
};

TEST_F(KernelLogCheck, UnreadableLogIsNotObservable) {
  EXPECT_EQ(host.outcome("kernel-log"), Outcome::notObservable);
  log("");
  EXPECT_EQ(host.outcome("kernel-log"), Outcome::passed) << "it was read, and has no such line";
}

TEST_F(KernelLogCheck, ListsSeriousLinesOfUsedDevices) {
  const std::string vf = "DMAR: [DMA Write] Request device [03:00.2] fault addr 0x0";
  const std::string xid = "NVRM: Xid (PCI:0000:04:00): 48, Double Bit ECC Error";
  log("mlx5_core 0000:03:00.0: health compromised\n" + vf + "\n" + xid +
      "\nmlx5_core 0000:09:00.0: health compromised\n");
  EXPECT_THAT(seen(), ElementsAre("warning mlx5_0: 2 lines or more; the last: " + vf,
                                  "warning 0000:04:00.0: 1 line: " + xid));
  EXPECT_EQ(host.finding("kernel-log").remedy, "dmesg | grep 03:00");
  host.requirements.functions = {host.function(host.gpu).address};
  EXPECT_THAT(seen(), ElementsAre("warning 0000:04:00.0: 1 line: " + xid));
  log("NVRM: Xid (PCI:0000:04:00): 31, pid=1, MMU Fault\n");
  EXPECT_EQ(host.outcome("kernel-log"), Outcome::passed) << "an application's fault";
}

TEST_F(KernelLogCheck, ErrorOfPortBelongsToTheDeviceThatItNames) {
  log("pcieport 0000:01:00.0: AER: Uncorrected (Fatal) error received: 0000:03:00.0\n");
  EXPECT_THAT(seen(), ElementsAre(HasSubstr("warning mlx5_0: 1 line")));
  log("pcieport 0000:02:01.0: DPC: containment event, status:0x1f01 source:0x0000\n");
  EXPECT_THAT(seen(), ElementsAre(HasSubstr("warning 0000:04:00.0: 1 line")));
}

TEST_F(KernelLogCheck, FindingQuotesTheLineThatExplainsIt) {
  for (Device& function : host.builder.topology.functions) {
    if (!function.physicalFunction) {
      function.link = function.best = {32000, 16};
    }
  }
  host.function(host.pf).link = {8000, 8};
  const std::string line =
      "pci 0000:03:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at "
      "0000:02:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)";
  log(line + "\nNVRM: Xid (PCI:0000:04:00): 48, Double Bit ECC Error\n");
  EXPECT_EQ(host.finding("pcie-link").seen, "Gen3 x8 of Gen5 x16 (kernel: " + line + ")");
  host.function(host.pf).link = {32000, 16};
  for (const Finding& each : host.findings("pcie-link")) {
    EXPECT_THAT(each.seen, Not(HasSubstr("kernel:"))) << "nothing to explain";
  }
}

TEST_F(KernelLogCheck, MissingIommuIsExplained) {
  host.file("sys/kernel/x", "");
  log("[    0.000000] DMAR: IOMMU disabled\n");
  EXPECT_THAT(host.finding("iommu").seen, HasSubstr("(kernel: DMAR: IOMMU disabled)"));
}

TEST_F(KernelLogCheck, RefusedVfsAreExplained) {
  host.require({});
  host.requirements.vfs.back().index = 9;
  log("mlx5_core 0000:03:00.0: not enough MMIO resources for SR-IOV\n");
  EXPECT_THAT(host.finding("vf-count").seen,
              HasSubstr("(kernel: mlx5_core 0000:03:00.0: not enough MMIO resources for SR-IOV)"));
  host.function(host.pf).vfCount = 0;
  std::string lines;
  for (int line = 0; line < 13; ++line) {
    lines += line == 7 ? "0x0000000000000000 0x00000000ffffffff 0x000000002014220c\n"
                       : "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  }
  host.file(host.pf, "resource", lines);
  EXPECT_THAT(host.finding("vf-space").seen, HasSubstr("(kernel: mlx5_core 0000:03:00.0: not"));
}

}  // namespace
}  // namespace vfpass::doctor
