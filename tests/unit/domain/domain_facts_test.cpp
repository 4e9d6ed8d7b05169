#include <gtest/gtest.h>

#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::domain {
namespace {

DomainFacts withVcpu(const std::string& element) {
  return readDomainFacts("<domain type='kvm'><name>train0</name>" + element + "</domain>");
}

TEST(DomainFacts, CountsVcpusThatArePresentAtStart) {
  EXPECT_EQ(withVcpu("<vcpu current='2'>16</vcpu>").vcpus, 16U);
  EXPECT_EQ(withVcpu("<vcpu current='2'>16</vcpu>").onlineVcpus, 2U);
  EXPECT_EQ(withVcpu("<vcpu placement='static'>16</vcpu>").onlineVcpus, 16U);
  EXPECT_EQ(withVcpu("<vcpu current='99'>16</vcpu>").onlineVcpus, 16U) << "libvirt refuses this";
  EXPECT_EQ(withVcpu("").onlineVcpus, 0U);
}

TEST(DomainFacts, ReadsDevicesOfQemusCommandLine) {
  const auto facts = withVcpu(
      "<qemu:commandline><qemu:arg value='-device'/><qemu:arg value='vfio-pci,host=01:00.0'/>"
      "<qemu:arg value='-set'/><qemu:arg value='device.hostdev0.x-nv-gpudirect-clique=0'/>"
      "<qemu:arg value='-set'/><qemu:arg value='device.hostdev1.rombar=0'/>"
      "<qemu:arg value='-set'/><qemu:arg value='device.pci.3.x-speed=32'/></qemu:commandline>");
  EXPECT_EQ(facts.foreignDevices, 1U);
  EXPECT_EQ(facts.foreignFunctions, std::vector<PciAddress>{*parsePciAddress("0000:01:00.0")});
  EXPECT_EQ(facts.cliqueAliases, std::set<std::string>{"hostdev0"});
  EXPECT_EQ(facts.linkAliases, std::set<std::string>{"pci.3"});
}

// GPUs of Grace hosts bring up their memory in cells without vCPUs and memory.
TEST(DomainFacts, KeepsMemoryNodesOfGpusApart) {
  const std::string xml =
      "<domain type='kvm'><name>train0</name><cpu><numa>"
      "<cell id='0' cpus='0-7' memory='64' unit='GiB'/><cell id='1' memory='0' unit='KiB'/>"
      "<cell id='2' memory='0' unit='KiB'/></numa></cpu><devices>"
      "<iommu model='smmuv3'><driver pciBus='1' accel='on'/></iommu><iommu model='smmuv3'/>"
      "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='9' slot='1' "
      "function='0'/></source><acpi nodeset='1-2'/></hostdev></devices></domain>";
  const auto facts = readDomainFacts(xml);
  ASSERT_EQ(facts.cells.size(), 1U);
  EXPECT_EQ(facts.cells.front().id, 0U);
  EXPECT_EQ(facts.emptyCells, (std::set<unsigned>{1, 2}));
  ASSERT_EQ(facts.memoryCells.size(), 1U);
  EXPECT_EQ(facts.foreignFunctions, (std::vector<PciAddress>{{0, 9, 1, 0}}));
  EXPECT_EQ(facts.memoryCells.at({0, 9, 1, 0}), (std::set<unsigned>{1, 2}));
  EXPECT_EQ(facts.fastSmmus, 1U);
  EXPECT_EQ(readGuestMachine(xml).cells.size(), 1U) << "the mirrored tree needs none of them";
}

TEST(DomainFacts, ReadsOverriddenProperties) {
  const auto device = [](const std::string& alias, const std::string& property) {
    return "<qemu:device alias='" + alias + "'><qemu:frontend><qemu:property name='" + property +
           "' type='string' value='8'/></qemu:frontend></qemu:device>";
  };
  const auto facts = withVcpu("<qemu:override>" + device("ua-a", "x-width") +
                              device("ua-b", "x-nv-gpudirect-clique") + device("ua-c", "hotplug") +
                              device("ua-d", "x-speed") + "</qemu:override>");
  EXPECT_EQ(facts.linkAliases, (std::set<std::string>{"ua-a", "ua-d"}));
  EXPECT_EQ(facts.cliqueAliases, std::set<std::string>{"ua-b"});
}

TEST(DomainFacts, ReadsLaunchSecurity) {
  EXPECT_EQ(withVcpu("").launchSecurity, "");
  EXPECT_FALSE(withVcpu("").uefi);
  const auto facts =
      withVcpu("<os><loader type='rom'>OVMF.inteltdx.fd</loader></os><launchSecurity type='tdx'/>");
  EXPECT_EQ(facts.launchSecurity, "tdx");
  EXPECT_TRUE(facts.uefi) << "OVMF is a ROM there";
  EXPECT_TRUE(withVcpu("<launchSecurity type='sev-snp'/>").uefi);
  EXPECT_FALSE(withVcpu("<launchSecurity type='s390-pv'/>").uefi);
}

}  // namespace
}  // namespace vfpass::domain
