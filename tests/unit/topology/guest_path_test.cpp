#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PciAddress at(const char* text) { return *parsePciAddress(text); }

PciController bridge(unsigned index, const char* model, const char* place) {
  PciController controller;
  controller.index = index;
  controller.model = model;
  controller.address = at(place);
  return controller;
}

// A root port, a switch behind another one, and a root port of an expander bus.
GuestMachine machine() {
  GuestMachine guest;
  guest.controllers.resize(1);
  guest.controllers[0].model = "pcie-root";
  guest.controllers.push_back(bridge(1, "pcie-root-port", "00:12.0"));
  guest.controllers.push_back(bridge(2, "pcie-root-port", "00:10.0"));
  guest.controllers.push_back(bridge(3, "pcie-switch-upstream-port", "02:00.0"));
  guest.controllers.push_back(bridge(4, "pcie-switch-downstream-port", "03:01.0"));
  guest.controllers.push_back(bridge(5, "pcie-expander-bus", "00:08.0"));
  guest.controllers.back().busNumber = 0xe0;
  guest.controllers.push_back(bridge(6, "pcie-root-port", "05:01.0"));
  return guest;
}

TEST(GuestPathTest, IsDeviceItselfOnRootBus) {
  EXPECT_THAT(guestPath(machine(), at("00:02.0")), ElementsAre(at("00:02.0")));
}

TEST(GuestPathTest, LeadsThroughRootPort) {
  EXPECT_THAT(guestPath(machine(), at("01:00.0")), ElementsAre(at("00:12.0"), at("01:00.0")));
}

TEST(GuestPathTest, LeadsThroughSwitch) {
  EXPECT_THAT(guestPath(machine(), at("04:00.0")),
              ElementsAre(at("00:10.0"), at("02:00.0"), at("03:01.0"), at("04:00.0")));
}

TEST(GuestPathTest, BeginsAtNumberOfExpanderBus) {
  EXPECT_THAT(guestPath(machine(), at("06:00.0")), ElementsAre(at("e0:01.0"), at("06:00.0")));
}

TEST(GuestPathTest, NamesEntriesBehindSwitches) {
  GuestMachine guest = machine();
  EXPECT_THAT(entriesBehindSwitches(guest), IsEmpty());
  guest.passed = {{at("41:00.0"), at("01:00.0"), "rail0"},
                  {at("42:00.0"), at("04:00.0"), "gpu0"},
                  {at("43:00.0"), at("06:00.0"), "rail1"},
                  {at("44:00.0"), at("04:00.0"), ""},
                  {at("45:00.0"), at("07:00.0"), "lost"}};
  EXPECT_THAT(entriesBehindSwitches(guest), ElementsAre("gpu0"));
}

TEST(GuestPathTest, IsEmptyWithoutController) {
  EXPECT_THAT(guestPath(machine(), at("07:00.0")), IsEmpty());
}

TEST(GuestPathTest, IsEmptyForLoopOfControllers) {
  GuestMachine guest = machine();
  guest.controllers[1].address = at("02:00.0");
  guest.controllers[2].address = at("01:00.0");
  EXPECT_THAT(guestPath(guest, at("01:00.0")), IsEmpty());
}

}  // namespace
}  // namespace vfpass::topology
