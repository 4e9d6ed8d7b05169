#include "read_pci_function.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vfpass::inventory {
namespace {

// A header with a capability list that begins at 0x40 with PCI Express.
std::string config(unsigned type, unsigned best, unsigned now) {
  std::string bytes(256, '\0');
  const auto put = [&](std::size_t at, unsigned value) {
    bytes[at] = static_cast<char>(value & 0xffU);
    bytes[at + 1] = static_cast<char>(value >> 8U);
  };
  put(0x06, 0x0010);
  put(0x34, 0x40);
  put(0x40, 0x0010);
  put(0x42, 0x0002 | type << 4U);
  put(0x4c, best);
  put(0x52, now);
  return bytes;
}

TEST(PciConfig, ReadsPortTypeAndLinks) {
  const auto found = findPcieCapability(config(5, 0x105, 0x083));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->type, PortType::upstreamPort);
  EXPECT_EQ(found->best, (PcieLink{32000, 16}));
  EXPECT_EQ(found->link, (PcieLink{8000, 8}));
}

TEST(PciConfig, AcceptsTruncatedSpaceOfAnyLength) {
  const std::string whole = config(4, 0x105, 0x105);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto found = findPcieCapability(std::string_view(whole).substr(0, length));
    EXPECT_EQ(found.has_value(), length >= 0x54) << length;
  }
}

TEST(PciConfig, StopsAtCircularList) {
  std::string circle = config(4, 0x105, 0x105);
  circle[0x40] = 0x01;  // power management, whose next capability is itself
  circle[0x41] = 0x40;
  EXPECT_FALSE(findPcieCapability(circle));
}

TEST(PciConfig, RejectsAllOnesOfRemovedFunction) {
  const auto found = findPcieCapability(std::string(256, '\xff'));
  EXPECT_FALSE(found && found->best.speed != 0);
}

TEST(PciConfig, IgnoresListWithoutStatusBit) {
  std::string none = config(4, 0x105, 0x105);
  none[0x06] = 0;
  EXPECT_FALSE(findPcieCapability(none));
}

}  // namespace
}  // namespace vfpass::inventory
