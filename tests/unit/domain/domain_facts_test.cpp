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
  EXPECT_EQ(facts.cliqueAliases, std::set<std::string>{"hostdev0"});
  EXPECT_EQ(facts.linkAliases, std::set<std::string>{"pci.3"});
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
