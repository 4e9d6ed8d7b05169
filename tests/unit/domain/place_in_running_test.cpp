#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string runningDomain(const std::string& devices, const std::string& root = "pcie-root") {
  return "<domain><name>a</name><uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid><devices>"
         "<controller type='pci' index='0' model='" +
         root + "'/>" + devices + "</devices></domain>";
}

std::string port(unsigned index, unsigned slot, const std::string& more = "") {
  return "<controller type='pci' index='" + std::to_string(index) + "' model='pcie-root-port'>" +
         more + "<address type='pci' domain='0x0000' bus='0x00' slot='" + std::to_string(slot) +
         "' function='0x0'/></controller>";
}

std::string deviceOn(unsigned bus) {
  return "<interface type='network'><address type='pci' domain='0x0000' bus='" +
         std::to_string(bus) + "' slot='0x00' function='0x0'/></interface>";
}

std::vector<unsigned> busesOf(const std::vector<GuestPlacement>& placements) {
  std::vector<unsigned> buses;
  for (const auto& placement : placements) {
    buses.push_back(placement.address.bus);
  }
  return buses;
}

TEST(PlaceInRunning, OffersOnlyEmptyPortsWithHotplug) {
  const auto live = runningDomain(port(1, 2) + port(2, 3) + port(3, 4, "<target hotplug='off'/>") +
                                  port(4, 5) + deviceOn(2));
  EXPECT_THAT(busesOf(placeInRunning(live, "")), ElementsAre(1, 4));
}

TEST(PlaceInRunning, RequiresThePlaceFreeInThePersistentXml) {
  const auto live = runningDomain(port(1, 2) + port(2, 3) + port(3, 4));
  const auto config = runningDomain(port(1, 2) + port(2, 9) + port(3, 4) + deviceOn(1));
  const auto placements = placeInRunning(live, config);
  EXPECT_THAT(busesOf(placements), ElementsAre(3)) << "1 is used there, 2 is another port there";
  EXPECT_FALSE(placements[0].port) << "both have the port: it is not ours to remove";
}

TEST(PlaceInRunning, ReturnsPortOfRunningDomainAloneAsOurs) {
  const auto live = runningDomain(port(1, 2));
  const auto placements = placeInRunning(live, runningDomain(""));
  ASSERT_EQ(placements.size(), 1U);
  EXPECT_EQ(placements[0].port, (RootPort{1, {0, 0, 2, 0}, false}));
  EXPECT_THAT(placeInRunning(live, runningDomain(port(7, 2))), IsEmpty()) << "its slot is taken";
}

TEST(PlaceInRunning, ReturnsSparePortOfOurTreeWithItsPath) {
  const std::string tree =
      "<controller type='pci' index='1' model='pcie-root-port'><target hotplug='off'/>"
      "<alias name='ua-vfpass-bus-1'/><address type='pci' bus='0x00' slot='0x02'/></controller>"
      "<controller type='pci' index='2' model='pcie-switch-upstream-port'>"
      "<alias name='ua-vfpass-bus-2'/><address type='pci' bus='0x01' slot='0x00'/></controller>"
      "<controller type='pci' index='3' model='pcie-switch-downstream-port'>"
      "<alias name='ua-vfpass-bus-3'/><address type='pci' bus='0x02' slot='0x00'/></controller>";
  const auto placements = placeInRunning(runningDomain(tree), runningDomain(tree));
  ASSERT_THAT(busesOf(placements), ElementsAre(3)) << "the root port leads to the switch";
  ASSERT_EQ(placements[0].controllers.size(), 3U);
  EXPECT_EQ(placements[0].controllers[0].model, ControllerModel::rootPort);
  EXPECT_FALSE(placements[0].controllers[0].hotplug);
  EXPECT_EQ(placements[0].controllers[2].index, 3U);
  const auto again = placeInRunning(runningDomain(tree), runningDomain(""));
  ASSERT_EQ(again.size(), 1U) << "a detach has removed the tree from the configuration only";
  EXPECT_EQ(again[0], placements[0]);
  EXPECT_THAT(placeInRunning(runningDomain(tree), runningDomain(port(2, 9))), IsEmpty());
}

TEST(PlaceInRunning, UsesSlotFreeInBothOnI440fx) {
  const std::string inSlot3 =
      "<interface type='network'><address type='pci' domain='0x0000' bus='0x00' slot='0x03' "
      "function='0x0'/></interface>";
  const auto placements =
      placeInRunning(runningDomain(inSlot3, "pci-root"), runningDomain("", "pci-root"));
  ASSERT_FALSE(placements.empty());
  EXPECT_EQ(placements[0].address, (PciAddress{0, 0, 4, 0}));
}

TEST(FitsRunning, RequiresTheSameFreePort) {
  const auto live = runningDomain(port(1, 2) + port(2, 3) + deviceOn(2));
  const auto at = [](std::uint8_t bus) { return GuestPlacement{{0, bus, 0, 0}, std::nullopt, {}}; };
  EXPECT_TRUE(fitsRunning(live, at(1)));
  EXPECT_FALSE(fitsRunning(live, at(2))) << "used";
  EXPECT_FALSE(fitsRunning(live, at(5))) << "not there";
  EXPECT_TRUE(fitsRunning(live, {{0, 1, 0, 0}, RootPort{1, {0, 0, 2, 0}, false}, {}}));
  EXPECT_FALSE(fitsRunning(live, {{0, 1, 0, 0}, RootPort{1, {0, 0, 8, 0}, false}, {}}));
}

TEST(MetadataXml, OmitsTheNamespace) {
  Lease lease;
  lease.entry = "rail0";
  const auto text = metadataXml({lease}, fake::sealKey());
  EXPECT_THAT(text, testing::StartsWith("<domain version=\"2\""));
  EXPECT_EQ(text.find("vfpass:"), std::string::npos);
  EXPECT_TRUE(metadataXml({}, fake::sealKey()).empty())
      << "libvirt removes the element for empty text";
}

}  // namespace
}  // namespace vfpass::domain
