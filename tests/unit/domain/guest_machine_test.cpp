#include "vfpass/domain/guest_machine.hpp"

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

TEST(GuestMachine, DistinguishesOurDevicesFromOthers) {
  const auto xml = readCase("libvirt-attached.xml");
  const auto machine = readGuestMachine(xml);
  const auto bare = withoutOurs(machine);
  EXPECT_THAT(machine.passed, SizeIs(3));
  ASSERT_THAT(bare.passed, SizeIs(1)) << "a manually written hostdev";
  EXPECT_EQ(bare.passed[0].name, "");
  EXPECT_EQ(bare.others, machine.others);
  EXPECT_THAT(bare.controllers,
              SizeIs(readGuestMachine(readCase("libvirt-before.xml")).controllers.size()));
}

}  // namespace
}  // namespace vfpass::domain
