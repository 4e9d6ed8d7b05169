#include "vfpass/domain/read_domain_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace vfpass::domain {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST(GuestMachine, ReadsCellsAndTheirHostNodes) {
  const auto machine = readGuestMachine(
      "<domain><name>a</name><os><type machine='pc-q35-7.2'>hvm</type></os><cpu><numa>"
      "<cell id='0' memory='1'/><cell id='1' memory='1'/></numa></cpu><numatune>"
      "<memnode cellid='0' mode='strict' nodeset='1,3'/><memnode cellid='1' "
      "nodeset='x'/></numatune>"
      "<devices><controller type='pci' index='0' model='pcie-root'/></devices></domain>");
  EXPECT_TRUE(machine.pciExpress());
  EXPECT_EQ(machine.machine, "pc-q35-7.2");
  EXPECT_THAT(machine.cells, ElementsAre(GuestCell{0, {1, 3}}, GuestCell{1, {}}));
}

std::string withDevices(const std::vector<std::string>& devices) {
  std::string arguments;
  for (const std::string& device : devices) {
    arguments += "<qemu:arg value='-device'/><qemu:arg value='" + device + "'/>";
  }
  return "<domain><name>a</name><qemu:commandline>" + arguments +
         "</qemu:commandline><devices><controller type='pci' index='0' model='pcie-root'/>"
         "</devices></domain>";
}

void readsBusNumbers(const std::string& upstream, const std::string& downstream) {
  const auto machine = readGuestMachine(withDevices(
      {"pxb-pcie,id=pcie.1,bus_nr=0x80,bus=pcie.0,addr=0x10", "ioh3420,id=rp1,bus=pcie.1,chassis=1",
       upstream + ",id=up1,bus=rp1", downstream + ",id=dn1,bus=up1,chassis=2,slot=2",
       downstream + ",id=dn2,bus=up1,chassis=3", "vfio-pci,host=0000:41:00.0,bus=dn1",
       "pxb,bus_nr=64", "pxb-pcie,bus_nr=0x100", "pcie-root-port,id=rp2,bus=pcie.0,addr=11.3",
       "pcie-root-port,id=loop,bus=loop", "virtio-rng-pci,addr=0x20",
       "virtio-rng-pci,bus=rp2,addr=0x0"}));
  std::set<unsigned> numbers;
  std::set<unsigned> chassis;
  std::vector<PciAddress> bridges;
  for (const PciController& controller : machine.controllers) {
    if (controller.index == 0) {
      continue;
    }
    EXPECT_GE(controller.index, 256U) << "no index of libvirt";
    if (controller.chassis) {
      chassis.insert(*controller.chassis);
    } else if (controller.busNumber) {
      numbers.insert(*controller.busNumber);
    } else {
      bridges.push_back(controller.address.value());
    }
  }
  EXPECT_EQ(numbers, (std::set<unsigned>{64, 65, 0x80, 0x81, 0x82, 0x83, 0x84}));
  EXPECT_EQ(chassis, (std::set<unsigned>{1, 3})) << "chassis 2 has slot=2";
  EXPECT_THAT(bridges, ElementsAre(PciAddress{0, 0, 0x11, 3}, PciAddress{0, 0, 0x1f, 0}));
  EXPECT_EQ(machine.others, (std::set<PciAddress>{{0, 0, 0x10, 0}, {0, 0, 0x11, 3}}));
}

TEST(GuestMachine, ReadsBusNumbersOfQemusCommandLine) {
  readsBusNumbers("x3130-upstream", "xio3130-downstream");
}

TEST(GuestMachine, ReadsBusNumbersBelowGenericSwitches) {
  readsBusNumbers("pcie-upstream-port", "pcie-downstream-port");
}

TEST(GuestMachine, DistinguishesOurDevicesFromOthers) {
  const auto xml = readCase("libvirt-attached.xml");
  const auto machine = readGuestMachine(xml);
  const auto bare = withoutOurDevices(machine);
  EXPECT_THAT(machine.passed, SizeIs(3));
  ASSERT_THAT(bare.passed, SizeIs(1)) << "a manually written hostdev";
  EXPECT_EQ(bare.passed[0].name, "");
  EXPECT_EQ(bare.others, machine.others);
  EXPECT_THAT(bare.controllers,
              SizeIs(readGuestMachine(readCase("libvirt-before.xml")).controllers.size()));
}

}  // namespace
}  // namespace vfpass::domain
