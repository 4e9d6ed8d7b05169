#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const PciAddress claimedVf = *parsePciAddress("0000:3b:00.2");

std::string handMadeDomain(const std::string& devices, const std::string& rest = "") {
  return "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>"
         "<name>train0</name><uuid>0f5e9a3c-1111-4222-8333-944455566671</uuid>" +
         rest + "<devices>" + devices + "</devices></domain>";
}

std::string sourceOf(const std::string& type = "") {
  return "<source><address " + type +
         "domain='0x0000' bus='0x3b' slot='0x00' function='0x2'/></source>";
}

HandMadeDevice only(const std::string& devices) {
  const auto found = readHandMade(handMadeDomain(devices));
  EXPECT_THAT(found, SizeIs(1)) << devices;
  return found.empty() ? HandMadeDevice{} : found.front();
}

TEST(HandMade, ReadsHostdevWithEverything) {
  const auto device = only(
      "<hostdev mode='subsystem' type='pci' managed='yes'>"
      "<driver name='vfio'/>" +
      sourceOf() +
      "<teaming type='transient' persistent='ua-net0'/>"
      "<alias name='ua-rail0'/></hostdev>");
  EXPECT_EQ(device.kind, HandMadeKind::hostdev);
  EXPECT_EQ(device.host, claimedVf);
  EXPECT_TRUE(device.managed);
  EXPECT_FALSE(device.ours);
  EXPECT_FALSE(device.placed);
  EXPECT_EQ(device.alias, "ua-rail0");
  EXPECT_EQ(device.driver, "vfio");
  EXPECT_EQ(device.teaming, (HandMadeTeaming{"transient", "ua-net0"}));
  EXPECT_EQ(device.form, "<hostdev type='pci'>");
}

TEST(HandMade, ReadsInterfaceWithMacAndVlan) {
  const auto device = only("<interface type='hostdev'><mac address='52:54:00:00:00:01'/>" +
                           sourceOf("type='pci' ") + "<vlan><tag id='100'/></vlan></interface>");
  EXPECT_EQ(device.kind, HandMadeKind::interface);
  EXPECT_EQ(device.host, claimedVf);
  EXPECT_FALSE(device.managed);
  EXPECT_EQ(device.mac, parseMacAddress("52:54:00:00:00:01"));
  EXPECT_EQ(device.vlan, (Vlan{100, 0, VlanProtocol::dot1q}));
  EXPECT_THAT(device.vlanFault, IsEmpty());
}

TEST(HandMade, NamesFaultOfVlan) {
  const auto faultOf = [](const std::string& vlan) {
    return only("<interface type='hostdev'>" + sourceOf("type='pci' ") + vlan + "</interface>");
  };
  EXPECT_THAT(faultOf("<vlan trunk='yes'><tag id='1'/></vlan>").vlanFault, HasSubstr("trunk"));
  EXPECT_THAT(faultOf("<vlan><tag id='1'/><tag id='2'/></vlan>").vlanFault, HasSubstr("several"));
  for (const char* id : {"4095", "-1", "", "99999999999999999999", "1 ", "0x10"}) {
    const auto device = faultOf("<vlan><tag id='" + std::string(id) + "'/></vlan>");
    EXPECT_THAT(device.vlanFault, HasSubstr("no tag")) << id;
    EXPECT_EQ(device.vlan, std::nullopt);
  }
  EXPECT_THAT(faultOf("<vlan/>").vlanFault, HasSubstr("no tag"));
  EXPECT_EQ(faultOf("<vlan><tag id='0'/></vlan>").vlan, (Vlan{}));
}

TEST(HandMade, DistinguishesOtherElements) {
  EXPECT_EQ(only("<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address "
                 "uuid='0f5e9a3c-1111-4222-8333-944455566671'/></source></hostdev>")
                .kind,
            HandMadeKind::mediated);
  const auto usb = only(
      "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1'/></source>"
      "</hostdev>");
  EXPECT_EQ(usb.kind, HandMadeKind::otherBus);
  EXPECT_EQ(usb.form, "<hostdev type='usb'>");
  EXPECT_EQ(usb.host, std::nullopt);
  EXPECT_EQ(only("<hostdev mode='subsystem' type='scsi'/>").kind, HandMadeKind::otherBus);
  EXPECT_EQ(only("<hostdev mode='capabilities' type='misc'/>").kind, HandMadeKind::capability);
  EXPECT_EQ(only("<interface type='hostdev'><source><address type='usb' bus='1' device='2'/>"
                 "</source></interface>")
                .kind,
            HandMadeKind::otherBus);
  const auto pool = only("<interface type='network'><source network='pool'/></interface>");
  EXPECT_EQ(pool.kind, HandMadeKind::fromNetwork);
  EXPECT_EQ(pool.network, "pool");
  const auto direct = only("<interface type='direct'><source dev='ens1f0v0'/></interface>");
  EXPECT_EQ(direct.kind, HandMadeKind::macvtap);
  EXPECT_EQ(direct.netdev, "ens1f0v0");
  const auto disk = only(
      "<disk type='nvme'><source type='pci' managed='yes' namespace='1'><address "
      "domain='0x0000' bus='0x3b' slot='0x00' function='0x2'/></source></disk>");
  EXPECT_EQ(disk.kind, HandMadeKind::nvmeDisk);
  EXPECT_TRUE(disk.managed);
  EXPECT_EQ(disk.host, claimedVf);
}

TEST(HandMade, IgnoresDevicesOfTheGuestAlone) {
  EXPECT_THAT(readHandMade(handMadeDomain("<interface type='bridge'/><disk type='file'/>"
                                          "<controller type='pci' index='0' model='pcie-root'/>"
                                          "<video/><!-- <hostdev/> -->text")),
              IsEmpty());
  EXPECT_THAT(readHandMade(handMadeDomain("")), IsEmpty());
}

TEST(HandMade, KnowsWhetherItHasAPlaceInTheGuest) {
  const auto placed = [](const std::string& address) {
    return only("<hostdev type='pci'>" + sourceOf() + address + "</hostdev>").placed;
  };
  EXPECT_TRUE(placed("<address type='pci' domain='0' bus='0x05' slot='0' function='0'/>"));
  EXPECT_FALSE(placed(""));
  EXPECT_FALSE(placed("<address type='ccw'/>"));
  EXPECT_FALSE(placed("<address type='pci' bus='0x100'/>"));
}

TEST(HandMade, MarksOurs) {
  EXPECT_TRUE(
      only("<hostdev type='pci'>" + sourceOf() + "<alias name='ua-vfpass-rail0'/></hostdev>").ours);
}

TEST(HandMade, KeepsHostdevWithInvalidAddress) {
  for (const char* source :
       {"", "<source/>", "<source><address bus='0x100'/></source>",
        "<source><address domain='0x0000' bus='x' slot='0' function='0'/></source>",
        "<source><address domain='0x1ffffffff' bus='0' slot='0' function='0'/></source>",
        "<source><address slot='0x20'/></source>", "<source><address function='8'/></source>"}) {
    const auto device =
        only("<hostdev mode='subsystem' type='pci'>" + std::string(source) + "</hostdev>");
    EXPECT_EQ(device.host, std::nullopt) << source;
  }
}

TEST(HandMade, ReadsDriverModelOfNewerLibvirt) {
  EXPECT_EQ(only("<hostdev type='pci'><driver name='vfio' model='nvgrace_gpu_vfio_pci'/>" +
                 sourceOf() + "</hostdev>")
                .driver,
            "nvgrace_gpu_vfio_pci");
}

TEST(HandMade, ReadsQemuArguments) {
  const auto found = readHandMade(handMadeDomain(
      "",
      "<qemu:commandline><qemu:arg value='-device'/><qemu:arg value='vfio-pci,host=3b:00.2'/>"
      "<qemu:arg value='-device'/><qemu:arg value='virtio-rng'/></qemu:commandline>"));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].kind, HandMadeKind::arguments);
  EXPECT_EQ(found[0].host, claimedVf);
  EXPECT_EQ(found[0].form, "-device vfio-pci");
}

TEST(HandMade, BoundsAndKeepsOddText) {
  const auto device =
      only("<hostdev type='" + std::string(5000, 'x') + "'><alias name='a&#10;b'/></hostdev>");
  EXPECT_LT(device.form.size(), 100U);
  EXPECT_EQ(device.alias, "a\nb");
}

TEST(HandMade, RefusesWhatIsNoDomain) {
  for (const char* xml : {"", "<network/>", "<domain>", "<domain/><domain/>", "no XML"}) {
    EXPECT_THROW(readHandMade(xml), Error) << xml;
    EXPECT_THROW(managingTool(xml), Error) << xml;
  }
}

TEST(ManagingTool, IsKnownByNamespaceOfMetadata) {
  const auto toolOf = [](const std::string& metadata) {
    return managingTool(handMadeDomain("", "<metadata>" + metadata + "</metadata>"));
  };
  const auto nova = toolOf(
      "<nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'><nova:name/>"
      "</nova:instance>");
  EXPECT_EQ(nova.name, "OpenStack");
  EXPECT_THAT(nova.evidence, HasSubstr("http://openstack.org/xmlns/libvirt/nova/1.1"));
  EXPECT_EQ(toolOf("<x xmlns='http://ovirt.org/vm/1.0'/>").name, "oVirt");
  EXPECT_EQ(toolOf("<kubevirt xmlns='http://kubevirt.io'/>").name, "KubeVirt");
  EXPECT_EQ(toolOf("<a/><one:vm xmlns:one='http://opennebula.org/xmlns/libvirt/1.0'/>").name,
            "OpenNebula");
  EXPECT_EQ(toolOf("<libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/1.0'/>").name,
            "");
  EXPECT_EQ(toolOf("<x about='http://openstack.org/xmlns/libvirt/nova/1.1'/>").name, "");
}

TEST(ManagingTool, SeveralAreNamed) {
  const auto tools = managingTool(handMadeDomain("",
                                                 "<metadata><x xmlns='http://ovirt.org/vm/1.0'/><y "
                                                 "xmlns='http://ovirt.org/vm/tune/1.0'/>"
                                                 "<z xmlns='http://kubevirt.io'/></metadata>"));
  EXPECT_EQ(tools.name, "oVirt and KubeVirt");
  EXPECT_EQ(tools.evidence,
            "its metadata has the namespace http://ovirt.org/vm/1.0, and its metadata has the "
            "namespace http://kubevirt.io");
}

TEST(ManagingTool, IsKnownByProduct) {
  const auto toolOf = [](const std::string& product) {
    return managingTool(handMadeDomain("", "<sysinfo type='smbios'><system><entry name='product'>" +
                                               product + "</entry></system></sysinfo>"));
  };
  EXPECT_EQ(toolOf("OpenStack Nova").name, "OpenStack");
  EXPECT_EQ(toolOf(" OpenStack Nova\n").name, "OpenStack");
  EXPECT_EQ(toolOf("CloudStack KVM Hypervisor").name, "CloudStack");
  EXPECT_EQ(toolOf("My OpenStack Nova").name, "");
}

// The product is that of the host's system with oVirt, and `None` with KubeVirt.
TEST(ManagingTool, IsKnownByManufacturer) {
  const auto toolOf = [](const std::string& manufacturer, const std::string& product) {
    return managingTool(handMadeDomain(
        "", "<sysinfo type='smbios'><system><entry name='manufacturer'>" + manufacturer +
                "</entry><entry name='product'>" + product + "</entry></system></sysinfo>"));
  };
  EXPECT_EQ(toolOf("KubeVirt", "None").name, "KubeVirt");
  EXPECT_EQ(toolOf("oVirt", "RHEL").name, "oVirt");
  EXPECT_EQ(toolOf("oVirt", "RHEL").evidence, "its <sysinfo> names the manufacturer oVirt");
  EXPECT_EQ(toolOf("oVirt", "oVirt Node").evidence, "its <sysinfo> names the product oVirt Node");
  EXPECT_EQ(toolOf("OpenStack Foundation", "Nova").name, "OpenStack");
  EXPECT_EQ(toolOf("Red Hat", "KVM").name, "");
  EXPECT_EQ(toolOf("None", "KubeVirt").name, "") << "of another entry";
}

}  // namespace
}  // namespace vfpass::domain
