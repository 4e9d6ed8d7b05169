#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class CpuIommu : public testing::Test, public DoctoredHost {
 protected:
  void groupType(unsigned number, const std::string& type) const {
    file("sys/kernel/iommu_groups/" + std::to_string(number) + "/type", type + "\n");
  }
};

TEST_F(CpuIommu, ReadsVirtualizationFromProcessorFlags) {
  EXPECT_EQ(outcome("cpu-virtualization"), Outcome::notObservable);
  file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vmx sse\n");
  EXPECT_EQ(outcome("cpu-virtualization"), Outcome::passed);
  file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vmxoid sse\n");
  EXPECT_EQ(outcome("cpu-virtualization"), Outcome::failed);
  builder.topology.processors.architecture = "arm64";
  EXPECT_EQ(outcome("cpu-virtualization"), Outcome::waived);
}

TEST_F(CpuIommu, RequiresKvmModuleOfProcessorVendor) {
  EXPECT_EQ(outcome("kvm"), Outcome::notObservable);  // a tree without modules
  file("sys/module/vfio/refcnt", "0\n");
  EXPECT_EQ(outcome("kvm"), Outcome::failed);
  EXPECT_EQ(finding("kvm").remedy, "modprobe kvm_intel");
  file("sys/module/kvm_intel/refcnt", "0\n");
  EXPECT_EQ(outcome("kvm"), Outcome::passed);
  builder.topology.processors.vendor = "AuthenticAMD";
  EXPECT_EQ(finding("kvm").remedy, "modprobe kvm_amd");
}

TEST_F(CpuIommu, DetectsIommuByItsGroups) {
  EXPECT_THAT(finding("iommu").remedy, testing::HasSubstr("intel_iommu=on"));
  file("proc/cmdline", "root=/dev/sda1 intel_iommu=on,sm_on quiet\n");
  EXPECT_THAT(finding("iommu").remedy, testing::StartsWith("intel_iommu=on is set already"));
  file("proc/cmdline", "root=/dev/sda1 intel_iommu=on intel_iommu=off quiet\n");
  EXPECT_THAT(finding("iommu").seen, testing::HasSubstr("intel_iommu=off"));
  EXPECT_EQ(finding("iommu").remedy,
            "remove intel_iommu=off from the kernel command line, then reboot");
  groupType(7, "DMA");
  EXPECT_EQ(outcome("iommu"), Outcome::passed);
}

// A snapshot of an Arm host is examined anywhere, and its kernel ignores arguments of x86.
TEST_F(CpuIommu, NamesNoArgumentsOfX86ForArm) {
  builder.topology.processors = {"arm64", "ARM", 0, 0xd4f, {}};
  file("proc/cmdline", "root=/dev/sda1 iommu=off quiet\n");
  EXPECT_EQ(finding("iommu").seen, "none");
  EXPECT_EQ(finding("iommu").remedy,
            "enable the SMMU in the firmware: systemctl reboot --firmware-setup");
  groupType(*function(pf).iommuGroup, "identity");
  file("proc/sys/kernel/osrelease", "6.8.0-1-arm64\n");
  file("proc/cmdline", "iommu=pt\n");
  EXPECT_THAT(finding("iommu-passthrough").remedy, testing::StartsWith("add iommu.passthrough=0 "));
  function(gpu).iommuGroup.reset();
  EXPECT_EQ(finding("iommu-group").remedy, "dmesg | grep -i smmu");
}

TEST_F(CpuIommu, DetectsInterruptRemappingByChipName) {
  EXPECT_EQ(outcome("interrupt-remapping"), Outcome::notObservable);
  file("sys/kernel/irq/30/chip_name", "PCI-MSI\n");
  EXPECT_EQ(outcome("interrupt-remapping"), Outcome::failed);
  EXPECT_THAT(finding("interrupt-remapping").remedy,
              testing::Not(testing::HasSubstr("intremap")));  // it is not on the command line
  file("sys/kernel/irq/31/chip_name", "IR-PCI-MSI\n");
  EXPECT_EQ(outcome("interrupt-remapping"), Outcome::passed);
  file("proc/cmdline", "intremap=off\n");
  EXPECT_EQ(outcome("interrupt-remapping"), Outcome::failed);
}

TEST_F(CpuIommu, ReportsUnsafeInterruptsNowOrAtNextLoad) {
  EXPECT_EQ(outcome("unsafe-interrupts"), Outcome::passed);
  file("etc/modprobe.d/old.conf", "options vfio_iommu_type1 allow_unsafe_interrupts=1\n");
  EXPECT_EQ(finding("unsafe-interrupts").subject, "/etc/modprobe.d/old.conf");
  EXPECT_EQ(finding("unsafe-interrupts").remedy,
            "remove allow_unsafe_interrupts=1 from the options of vfio_iommu_type1 in "
            "/etc/modprobe.d/old.conf");
  file("etc/modprobe.d/old.conf", "# options vfio_iommu_type1 allow_unsafe_interrupts=1\n");
  EXPECT_EQ(outcome("unsafe-interrupts"), Outcome::passed);
  file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
  EXPECT_EQ(outcome("unsafe-interrupts"), Outcome::failed);
}

TEST_F(CpuIommu, ReportsEveryPlaceOfUnsafeInterrupts) {
  file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
  file("etc/modprobe.d/old.conf", "options vfio_iommu_type1 allow_unsafe_interrupts=1\n");
  file("proc/cmdline", "quiet vfio_iommu_type1.allow_unsafe_interrupts=1\n");
  const auto found = findings("unsafe-interrupts");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].seen, "allow_unsafe_interrupts=Y");
  EXPECT_EQ(found[1].remedy,
            "remove vfio_iommu_type1.allow_unsafe_interrupts=1 from the kernel command line, then "
            "reboot");
  EXPECT_EQ(found[2].subject, "/etc/modprobe.d/old.conf");
}

TEST_F(CpuIommu, ReportsNoIommuMode) {
  file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
  EXPECT_EQ(outcome("no-iommu-mode"), Outcome::passed);
  file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
  EXPECT_EQ(outcome("no-iommu-mode"), Outcome::failed);
}

TEST_F(CpuIommu, IsUnsureOfPassthroughOnOldKernel) {
  EXPECT_EQ(outcome("iommu-passthrough"), Outcome::waived);  // no groups
  groupType(*function(pf).iommuGroup, "DMA-FQ");
  EXPECT_EQ(outcome("iommu-passthrough"), Outcome::passed);
  groupType(*function(pf).iommuGroup, "identity");
  file("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
  EXPECT_EQ(outcome("iommu-passthrough"), Outcome::notObservable);
  EXPECT_THAT(finding("iommu-passthrough").remedy, testing::StartsWith("add iommu.passthrough=0 "));
  file("proc/cmdline", "iommu=pt\n");
  EXPECT_THAT(finding("iommu-passthrough").remedy, testing::StartsWith("remove iommu=pt from "));
  file("proc/cmdline", "iommu.passthrough=1\n");
  EXPECT_THAT(finding("iommu-passthrough").remedy,
              testing::StartsWith("remove iommu.passthrough=1 from "));
  file("proc/sys/kernel/osrelease", "6.12.9\n");
  EXPECT_EQ(outcome("iommu-passthrough"), Outcome::passed);
}

TEST_F(CpuIommu, ReportsSharedIommuGroup) {
  EXPECT_EQ(outcome("iommu-group"), Outcome::waived);
  groupType(7, "DMA");
  const auto found = findings("iommu-group");
  ASSERT_EQ(found.size(), 2U);  // the GPU, and one for all VFs of the PF
  EXPECT_EQ(found[1].seen, "2 VFs alone");
  function(gpu).iommuGroup = function(gpuPort).iommuGroup;  // bridges do not count
  EXPECT_EQ(outcome("iommu-group"), Outcome::passed);
  function(gpu).iommuGroup = function(pf).iommuGroup;
  EXPECT_EQ(finding("iommu-group").seen, "shares group 14 with 0000:03:00.0");
  function(gpu).iommuGroup.reset();
  EXPECT_EQ(finding("iommu-group").seen, "no IOMMU group");
}

TEST_F(CpuIommu, OnlyWarnsOfDirectNicInGroupOfGpu) {
  groupType(7, "DMA");
  const auto dma = builder.function(FunctionRole::other, "0001:04:00.0", 0, gpuPort);
  function(dma).vendor = 0x15b3;
  function(dma).device = 0x2100;
  function(dma).iommuGroup = function(gpu).iommuGroup;
  EXPECT_EQ(finding("iommu-group").outcome, Outcome::warning);
  EXPECT_THAT(finding("iommu-group").remedy, testing::StartsWith("list 0001:04:00.0 under"));
}

TEST_F(CpuIommu, AllowsGpusAudioFunctionInItsGroup) {
  groupType(7, "DMA");
  const auto audio = builder.function(FunctionRole::other, "0000:04:00.1", 0, gpuPort);
  function(audio).iommuGroup = function(gpu).iommuGroup;
  EXPECT_EQ(outcome("iommu-group"), Outcome::passed);
}

}  // namespace
}  // namespace vfpass::doctor
