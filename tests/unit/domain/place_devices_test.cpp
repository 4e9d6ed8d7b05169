#include <gtest/gtest.h>

#include <set>

#include "fake/seal_key.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

std::string express(const std::string& devices = {}) {
  return "<domain><devices><controller type='pci' index='0' model='pcie-root'/>" + devices +
         "</devices></domain>";
}

std::string portAt(unsigned index, unsigned slot) {
  return "<controller type='pci' index='" + std::to_string(index) +
         "' model='pcie-root-port'><address type='pci' bus='0' slot='" + std::to_string(slot) +
         "' function='0'/></controller>";
}

TEST(PlaceDevices, GivesEachDeviceItsOwnPortAndSlot) {
  const auto placed = placeDevices(readCase("q35.xml"), 3);
  ASSERT_EQ(placed.size(), 3U);
  EXPECT_EQ(placed[0], (GuestPlacement{{0, 3, 0, 0}, RootPort{3, {0, 0, 4, 0}, false}, {}}));
  EXPECT_EQ(placed[1], (GuestPlacement{{0, 4, 0, 0}, RootPort{4, {0, 0, 5, 0}, false}, {}}));
  EXPECT_EQ(placed[2], (GuestPlacement{{0, 5, 0, 0}, RootPort{5, {0, 0, 6, 0}, false}, {}}));
}

TEST(PlaceDevices, PlacesNothingForCountZero) { EXPECT_TRUE(placeDevices(express(), 0).empty()); }

TEST(PlaceDevices, FillsGapsInTheIndexesFirst) {
  const auto placed = placeDevices(express(portAt(1, 2) + portAt(3, 3)), 2);
  EXPECT_EQ(placed[0].port->index, 2U);
  EXPECT_EQ(placed[1].port->index, 4U);
}

TEST(PlaceDevices, AvoidsSlotsOfQemusCommandLine) {
  std::string xml = express();
  xml.insert(xml.find("<devices>"),
             "<qemu:commandline><qemu:arg value='-device'/><qemu:arg "
             "value='pxb-pcie,bus_nr=0x80,addr=0x2'/></qemu:commandline>");
  EXPECT_EQ(placeDevices(express(), 1)[0].port->address.slot, 2);
  EXPECT_EQ(placeDevices(xml, 1)[0].port->address.slot, 3);
}

TEST(PlaceDevices, SharesSlotsOnlyWhenNoneIsLeft) {
  const auto all = placeDevices(express(), 29);
  std::set<std::uint8_t> slots;
  for (const auto& placement : all) {
    slots.insert(placement.port->address.slot);
    EXPECT_FALSE(placement.port->multifunction);
    EXPECT_EQ(placement.port->address.function, 0);
  }
  EXPECT_EQ(slots.size(), 29U);
  EXPECT_FALSE(slots.contains(0) || slots.contains(1) || slots.contains(0x1f));

  const auto packed = placeDevices(express(), 30);
  ASSERT_EQ(packed.size(), 30U);
  std::set<PciAddress> ports;
  std::set<PciAddress> devices;
  for (const auto& placement : packed) {
    EXPECT_TRUE(ports.insert(placement.port->address).second);
    EXPECT_TRUE(devices.insert(placement.address).second);
    EXPECT_EQ(placement.port->multifunction, placement.port->address.function == 0);
  }
  EXPECT_EQ(packed[8].port->address, (PciAddress{0, 0, 3, 0}));
}

TEST(PlaceDevices, SingleFunctionInASlotIsNotMultifunction) {
  const auto packed = placeDevices(express(), 33);
  EXPECT_EQ(packed[32].port->address.function, 0);
  EXPECT_FALSE(packed[32].port->multifunction);
}

TEST(PlaceDevices, RefusesWhenTheGuestIsFull) {
  EXPECT_NO_THROW(placeDevices(express(), 29 * 8));
  EXPECT_THROW(placeDevices(express(), 29 * 8 + 1), Error);
  std::string full;
  for (unsigned slot = 1; slot <= 31; ++slot) {
    full += portAt(slot, slot);
  }
  EXPECT_THROW(placeDevices(express(full), 1), Error);
  std::string indexes;
  for (unsigned index = 1; index <= 255; ++index) {
    indexes += portAt(index, 2);
  }
  EXPECT_THROW(placeDevices(express(indexes), 1), Error);
}

TEST(PlaceDevices, UsesSlotsOfBus0OnI440fx) {
  const auto placed = placeDevices(readCase("i440fx.xml"), 2);
  EXPECT_EQ(placed[0], (GuestPlacement{{0, 0, 4, 0}, std::nullopt, {}}));
  EXPECT_EQ(placed[1], (GuestPlacement{{0, 0, 6, 0}, std::nullopt, {}}));
  EXPECT_NO_THROW(placeDevices(readCase("i440fx.xml"), 27));
  EXPECT_THROW(placeDevices(readCase("i440fx.xml"), 28), Error);
}

TEST(PlaceDevices, IgnoresHostAddresses) {
  const auto placed =
      placeDevices(express("<interface type='hostdev'><source><address type='pci' bus='0' slot='2' "
                           "function='0'/></source></interface>"),
                   1);
  EXPECT_EQ(placed[0].port->address.slot, 2);
}

TEST(PlaceDevices, RefusesAGuestWithoutPci) {
  EXPECT_THROW(placeDevices("<domain><devices/></domain>", 1), Error);
  EXPECT_THROW(placeDevices("<domain/>", 1), Error);
  EXPECT_THROW(placeDevices(express("<controller type='pci' index='256'/>"), 1), Error);
  EXPECT_THROW(placeDevices(express("<controller type='pci'/>"), 1), Error);
}

TEST(PlaceDevices, AvoidsPlacesOfOurDevices) {
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), builtInTemplates(), fake::sealKey());
  const auto placed = placeDevices(with, 1);
  EXPECT_EQ(placed[0], (GuestPlacement{{0, 5, 0, 0}, RootPort{5, {0, 0, 6, 0}, false}, {}}));
}

}  // namespace
}  // namespace vfpass::domain
