// GPUs of Grace hosts in aarch64 guests: proposed, never applied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "support.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::settings {
namespace {

using testing::HasSubstr;
using testing::IsNull;
using testing::Not;
using testing::NotNull;

/// A host whose GPUs match the driver of Grace.
TestHost graceHost() {
  TestHost host;
  for (Device& function : host.topology.functions) {
    if (function.role == FunctionRole::gpu) {
      function.vfioDriver = "nvgrace_gpu_vfio_pci";
    }
  }
  return host;
}

std::vector<GuestDevice> firstGpus(unsigned count) {
  std::vector<GuestDevice> gpus;
  for (unsigned rail = 0; rail < count; ++rail) {
    gpus.push_back(railDevices({rail}).front());
  }
  return gpus;
}

/// `inside` goes into `<devices>`.
std::string armDomain(const std::string& cells, const std::string& inside = "",
                      const std::string& hole = "", const std::string& machine = "virt-11.1") {
  return "<domain type='kvm'><name>train0</name><memory unit='GiB'>64</memory>"
         "<vcpu>8</vcpu><os firmware='efi'><type arch='aarch64' machine='" +
         machine + "'>hvm</type></os><cpu mode='host-passthrough'><numa>" + cells +
         "</numa></cpu><devices><controller type='pci' index='0' model='pcie-root'>" + hole +
         "</controller>" + inside + "</devices></domain>";
}

const std::string oneCell = "<cell id='0' cpus='0-7' memory='64' unit='GiB'/>";

std::string emptyCells(unsigned last) {
  std::string cells;
  for (unsigned id = 1; id <= last; ++id) {
    cells += "<cell id='" + std::to_string(id) + "' memory='0' unit='KiB'/>";
  }
  return cells;
}

/// A GPU of the host, on this bus, with memory nodes.
std::string hostdev(const std::string& bus, const std::string& nodes) {
  return "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0x" + bus +
         "' slot='0' function='0'/></source><acpi nodeset='" + nodes + "'/></hostdev>";
}

Proposal proposalOn(const TestHost& host, const std::string& xml, std::vector<GuestDevice> devices,
                    const HypervisorVersions& versions = {Version{12, 8}, Version{11, 1}},
                    VfioBackend backend = VfioBackend::iommufd) {
  return propose({host.topology,
                  host.capacity,
                  domain::readDomainFacts(xml),
                  versions,
                  std::move(devices),
                  {},
                  backend});
}

constexpr std::array coherentSettings{"memory-nodes", "smmu", "pci-hole"};

TEST(CoherentGpus, AreProposedAndNeverApplied) {
  const auto proposal = proposalOn(graceHost(), armDomain(oneCell), firstGpus(2));
  for (const char* name : coherentSettings) {
    ASSERT_THAT(settingOf(proposal, name), NotNull()) << name;
    EXPECT_EQ(settingOf(proposal, name)->standing, SettingStanding::manual) << name;
    EXPECT_FALSE(settingOf(proposal, name)->edit) << name;
    EXPECT_THAT(settingOf(proposal, name)->reason, HasSubstr("nobody could test it")) << name;
    EXPECT_THAT(settingOf(proposal, name)->reason, Not(HasSubstr("it needs"))) << name;
  }
  EXPECT_EQ(settingOf(proposal, "memory-nodes")->what,
            "<cell id='1' memory='0' unit='KiB'/> to '16' in <numa>, and <acpi nodeset='1-8'/> in "
            "the <hostdev> of gpu0, <acpi nodeset='9-16'/> in the <hostdev> of gpu1");
  EXPECT_THAT(settingOf(proposal, "smmu")->what, HasSubstr("each of gpu0, gpu1"));
  EXPECT_EQ(settingOf(proposal, "pci-hole")->what, "<pcihole64> of 2 TiB on pcie-root");
}

TEST(CoherentGpus, NeedNothingWhenDomainHasAll) {
  const std::string devices =
      "<iommu model='smmuv3'><driver pciBus='1' accel='on'/></iommu>" + hostdev("10", "1-8");
  const auto proposal = proposalOn(
      graceHost(),
      armDomain(oneCell + emptyCells(8), devices, "<pcihole64 unit='GiB'>1024</pcihole64>"),
      firstGpus(1));
  for (const char* name : coherentSettings) {
    EXPECT_THAT(settingOf(proposal, name), IsNull()) << name;
  }
}

std::string nodesFor(const std::string& cells, const std::string& devices, unsigned gpus) {
  const auto proposal = proposalOn(graceHost(), armDomain(cells, devices), firstGpus(gpus));
  const DomainSetting* setting = settingOf(proposal, "memory-nodes");
  return setting == nullptr ? "" : setting->what;
}

// The cells were added, the <hostdev> is as before.
TEST(CoherentGpus, UseMemoryNodesThatNoDeviceHas) {
  const std::string cells = oneCell + emptyCells(8);
  EXPECT_EQ(nodesFor(cells, "", 1), "<acpi nodeset='1-8'/> in the <hostdev> of gpu0");
  EXPECT_EQ(nodesFor(cells, hostdev("10", "1-8"), 1), "");
  EXPECT_EQ(nodesFor(oneCell + emptyCells(4), hostdev("10", "1-3"), 1),
            "<cell id='5' memory='0' unit='KiB'/> to '8' in <numa>, and <acpi nodeset='1-8'/> in "
            "the <hostdev> of gpu0");
  EXPECT_EQ(nodesFor(cells, hostdev("90", "1-8"), 1),
            "<cell id='9' memory='0' unit='KiB'/> to '16' in <numa>, and <acpi nodeset='9-16'/> in "
            "the <hostdev> of gpu0")
      << "of a device that the mapping does not have";
}

TEST(CoherentGpus, KeepMemoryNodesWhenAnotherGpuIsAdded) {
  EXPECT_EQ(nodesFor(oneCell + emptyCells(8), hostdev("10", "1-8"), 2),
            "<cell id='9' memory='0' unit='KiB'/> to '16' in <numa>, and <acpi nodeset='9-16'/> in "
            "the <hostdev> of gpu1");
  EXPECT_EQ(nodesFor(oneCell + emptyCells(16), hostdev("10", "1-8") + hostdev("20", "9-16"), 2),
            "");
}

TEST(CoherentGpus, NameWhatVersionsLack) {
  const auto proposal =
      proposalOn(graceHost(), armDomain(oneCell), firstGpus(1), {Version{9, 0}, Version{7, 2}});
  EXPECT_THAT(settingOf(proposal, "memory-nodes")->reason,
              HasSubstr("it needs libvirt 11.8 (this is 9.0) and QEMU 9.0 (this is 7.2)"));
  EXPECT_THAT(settingOf(proposal, "smmu")->reason,
              HasSubstr("it needs libvirt 12.8 (this is 9.0) and QEMU 11.1 (this is 7.2)"));
  EXPECT_THAT(settingOf(proposal, "pci-hole")->reason,
              HasSubstr("it needs libvirt 12.8 (this is 9.0) and QEMU 10.0 (this is 7.2)"));
}

TEST(CoherentGpus, HoleNeedsLibvirtThatAcceptsItOnVirt) {
  const auto proposal =
      proposalOn(graceHost(), armDomain(oneCell), firstGpus(1), {Version{11, 3}, Version{10, 0}});
  EXPECT_THAT(settingOf(proposal, "pci-hole")->reason,
              HasSubstr("it needs libvirt 12.8 (this is 11.3); vfpass does not apply this"));
}

std::string smmuReason(const std::string& devices, VfioBackend backend, unsigned gpus = 1) {
  const auto proposal =
      proposalOn(graceHost(), armDomain(oneCell, devices), firstGpus(gpus), {}, backend);
  const DomainSetting* setting = settingOf(proposal, "smmu");
  return setting == nullptr ? "" : setting->reason;
}

TEST(CoherentGpus, SmmuNeedsIommufdOnlyWhereItIsNotChosen) {
  const auto advises = HasSubstr("set `iommu-backend: iommufd`");
  const auto own = [](const std::string& bus) {
    return "<hostdev mode='subsystem' type='pci'><driver iommufd='yes'/><source><address "
           "domain='0' bus='0x" +
           bus + "' slot='0' function='0'/></source></hostdev>";
  };
  EXPECT_THAT(smmuReason("", VfioBackend::container), advises);
  EXPECT_THAT(smmuReason("", VfioBackend::iommufd), Not(advises));
  EXPECT_THAT(smmuReason(own("10"), VfioBackend::container), Not(advises));
  EXPECT_THAT(smmuReason(own("10"), VfioBackend::container, 2), advises) << "only one of them";
}

TEST(CoherentGpus, PresentSmmusNeedIommufd) {
  const std::string smmu = "<iommu model='smmuv3'><driver pciBus='1' accel='on'/></iommu>";
  EXPECT_EQ(smmuReason(smmu, VfioBackend::iommufd), "");
  EXPECT_THAT(smmuReason(smmu, VfioBackend::container),
              HasSubstr("works only with iommufd: remove `iommu-backend: container`"));
}

TEST(CoherentGpus, KeepAdministratorsIommuAndHole) {
  const auto proposal = proposalOn(
      graceHost(),
      armDomain(oneCell, "<iommu model='smmuv3'/>", "<pcihole64 unit='GiB'>768</pcihole64>"),
      firstGpus(1));
  for (const char* name : {"smmu", "pci-hole"}) {
    ASSERT_THAT(settingOf(proposal, name), NotNull()) << name;
    EXPECT_EQ(settingOf(proposal, name)->standing, SettingStanding::administrators) << name;
  }
}

TEST(CoherentGpus, NeedMachineTypeVirt) {
  const auto proposal =
      proposalOn(graceHost(), armDomain(oneCell, "", "", "sbsa-ref"), firstGpus(1));
  ASSERT_THAT(settingOf(proposal, "memory-nodes"), NotNull());
  EXPECT_EQ(settingOf(proposal, "memory-nodes")->what, "machine type virt");
  EXPECT_THAT(settingOf(proposal, "smmu"), IsNull());
}

TEST(CoherentGpus, AreThoseOfTheirDriverOnly) {
  auto devices = firstGpus(1);
  EXPECT_THAT(settingOf(proposalOn(TestHost(), armDomain(oneCell), devices), "memory-nodes"),
              IsNull());
  EXPECT_THAT(settingOf(proposalOn(graceHost(), domainXml(8, 16 * gib), devices), "memory-nodes"),
              IsNull());
  devices.front().driver = "vfio-pci";
  EXPECT_THAT(settingOf(proposalOn(graceHost(), armDomain(oneCell), devices), "memory-nodes"),
              IsNull())
      << "without its driver the GPU has no coherent memory";
}

// Memory nodes have nothing that could be placed on a host node.
TEST(CoherentGpus, LeavePlacementOfOtherCellsPossible) {
  const auto placed = proposalOn(graceHost(), armDomain(oneCell), firstGpus(1));
  const auto beside = proposalOn(graceHost(), armDomain(oneCell + emptyCells(8)), firstGpus(1));
  ASSERT_NE(elementsOf(placed, "vcpu-placement"), "");
  EXPECT_EQ(elementsOf(beside, "vcpu-placement"), elementsOf(placed, "vcpu-placement"));
  EXPECT_EQ(elementsOf(beside, "memory-placement"), elementsOf(placed, "memory-placement"));
  EXPECT_EQ(beside.cells.size(), 1U);
}

}  // namespace
}  // namespace vfpass::settings
