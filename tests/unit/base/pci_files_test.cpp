#include "vfpass/base/pci_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vfpass {
namespace {

void put(std::string& config, std::size_t at, std::size_t word) {
  config[at] = static_cast<char>(word & 0xffU);
  config[at + 1] = static_cast<char>(word >> 8U & 0xffU);
}

// A header whose capability list has these IDs, every 8 bytes from 0x40 on.
std::string configWith(const std::vector<unsigned>& ids) {
  std::string config(256, '\0');
  put(config, 0x06, 0x0010);
  put(config, 0x34, 0x40);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t next = i + 1 < ids.size() ? 0x48 + 8 * i : 0;
    put(config, 0x40 + 8 * i, ids[i] | next << 8U);
  }
  return config;
}

// Extended capabilities with these IDs, one after the other.
std::string extendedWith(const std::vector<unsigned>& ids) {
  std::string config(4096, '\0');
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t place = 0x100 + i * 0x10;
    put(config, place, ids[i]);
    put(config, place + 2, 1 | (i + 1 < ids.size() ? place + 0x10 : 0) << 4U);
  }
  return config;
}

TEST(ConfigWord, IsLittleEndianAndEndsWithTheSpace) {
  EXPECT_EQ(configWord("\x34\x12\xff", 0), 0x1234);
  EXPECT_EQ(configWord("\x34\x12\xff", 1), 0xff12);
  EXPECT_EQ(configWord("\x34\x12\xff", 2), std::nullopt);
  EXPECT_EQ(configWord("", 0), std::nullopt);
}

TEST(Capability, IsFoundAtItsOffset) {
  const std::string config = configWith({0x01, 0x05, pciExpress});
  EXPECT_EQ(findCapability(config, 0x01), 0x40U);
  EXPECT_EQ(findCapability(config, pciExpress), 0x50U);
  EXPECT_EQ(findCapability(config, 0x11), std::nullopt);
}

TEST(Capability, IsNotFoundInShortOrCorruptSpace) {
  const std::string whole = configWith({0x01, pciExpress});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(findCapability(whole.substr(0, length), pciExpress).has_value(), length >= 0x4a);
  }
  std::string circle = configWith({0x01});
  circle[0x41] = 0x43;  // itself; the lowest bits do not count
  EXPECT_EQ(findCapability(circle, pciExpress), std::nullopt);
  std::string none = configWith({pciExpress});
  none[0x06] = 0;
  EXPECT_EQ(findCapability(none, pciExpress), std::nullopt) << "the status register has no list";
  EXPECT_EQ(findCapability(std::string(256, '\xff'), pciExpress), std::nullopt);
}

TEST(ExtendedCapability, IsFoundAtItsOffset) {
  const std::string config =
      extendedWith({0x0001, accessControlServices, addressTranslationServices});
  EXPECT_EQ(findExtendedCapability(config, accessControlServices), 0x110U);
  EXPECT_EQ(findExtendedCapability(config, addressTranslationServices), 0x120U);
  EXPECT_EQ(findExtendedCapability(config, 0x0010), std::nullopt);
}

TEST(ExtendedCapability, IsNotFoundInShortOrCorruptSpace) {
  EXPECT_EQ(findExtendedCapability(std::string(256, '\0'), accessControlServices), std::nullopt);
  EXPECT_EQ(findExtendedCapability(std::string(0x102, '\x0d'), 0x0d0d), std::nullopt);
  std::string loop = extendedWith({0x0001});
  put(loop, 0x102, 0x1001);  // its own successor
  EXPECT_EQ(findExtendedCapability(loop, accessControlServices), std::nullopt);
  EXPECT_EQ(findExtendedCapability(std::string(4096, '\xff'), accessControlServices), std::nullopt);
  std::string beyond = extendedWith({0x0001});
  beyond[0x103] = '\xff';
  EXPECT_EQ(findExtendedCapability(beyond.substr(0, 0x800), accessControlServices), std::nullopt);
  EXPECT_EQ(findExtendedCapability(beyond, accessControlServices), std::nullopt);
}

TEST(SerialNumber, HasItsHighestByteFirst) {
  std::string config = extendedWith({0x0001, deviceSerialNumber});
  EXPECT_EQ(findSerialNumber(config), "") << "all zero: not set";
  put(config, 0x114, 0x2a10);
  put(config, 0x11a, 0x946d);
  EXPECT_EQ(findSerialNumber(config), "94-6d-00-00-00-00-2a-10");
  EXPECT_EQ(findSerialNumber(config.substr(0, 0x11b)), "");
  config.replace(0x114, 8, 8, '\xff');
  EXPECT_EQ(findSerialNumber(config), "") << "the device does not respond";
  EXPECT_EQ(findSerialNumber(extendedWith({0x0001})), "");
  EXPECT_EQ(findSerialNumber(""), "");
}

TEST(ExtendedSpace, IsLongerThanWhatAConventionalDeviceHas) {
  EXPECT_FALSE(hasExtendedSpace(""));
  EXPECT_FALSE(hasExtendedSpace(std::string(64, '\0')));
  EXPECT_FALSE(hasExtendedSpace(std::string(256, '\0')));
  EXPECT_TRUE(hasExtendedSpace(std::string(4096, '\0')));
}

TEST(FindPciePackets, ReadsSizesInBytes) {
  std::string config = configWith({0x01, pciExpress});
  EXPECT_EQ(findPciePackets(config), (PciePackets{128, 128, 128, false}));
  put(config, 0x48 + 4, 0x0002);
  put(config, 0x48 + 8, 0x5930);
  EXPECT_EQ(findPciePackets(config), (PciePackets{256, 512, 4096, true}));
  put(config, 0x48 + 8, 0x7930);
  EXPECT_EQ(findPciePackets(config), std::nullopt) << "a reserved size";
  EXPECT_EQ(findPciePackets(configWith({0x01})), std::nullopt);
  EXPECT_EQ(findPciePackets(std::string_view(config).substr(0, 0x50)), std::nullopt);
  EXPECT_EQ(findPciePackets(""), std::nullopt);
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PciResources, AreTheLines) {
  EXPECT_THAT(readPciResources("0x00000000d0000000 0x00000000d1ffffff 0x000000000014220c\n"
                               "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                               "0x0000000000000000 0x00000000000fffff 0x0000000020040200\n"),
              ElementsAre(PciResource{0xd0000000, 0x2000000, 0x14220c}, PciResource{},
                          PciResource{0, 0x100000, unsetResource | 0x40200}));
  EXPECT_THAT(readPciResources(""), IsEmpty());
}

// Its place among the others stays.
TEST(PciResources, LineOfAnotherFormHasNothing) {
  for (const char* line : {"", "text", "0x1 0x2", "1 2 200", "0x1 0x2 0xg",
                           "0x10000000000000000 0x10000000000000001 0x200", "0x 0x 0x"}) {
    EXPECT_THAT(readPciResources(std::string(line) + "\n0x1000 0x1fff 0x200\n"),
                ElementsAre(PciResource{}, PciResource{0x1000, 0x1000, memoryResource}))
        << line;
  }
}

TEST(PciResources, RangeThatEndsBeforeItsBeginIsEmpty) {
  EXPECT_THAT(readPciResources("0x2000 0x1000 0x200\n"),
              ElementsAre(PciResource{0x2000, 0, memoryResource}));
  EXPECT_THAT(readPciResources("0x1 0xffffffffffffffff 0x200\n")[0].bytes, ~std::uint64_t{0});
}

TEST(DriverName, HasLettersDigitsUnderscoresAndHyphens) {
  for (const std::string& name : {std::string("vfio-pci"), std::string("mlx5_core"),
                                  std::string("8139too"), std::string(63, 'a')}) {
    EXPECT_TRUE(isDriverName(name)) << name;
  }
}

TEST(DriverName, IsNoPathNoOptionAndNotEmpty) {
  for (const std::string& name :
       {std::string(), std::string("../../../../../../tmp/x"), std::string("/tmp/x"),
        std::string("a b"), std::string("a\n"), std::string("."), std::string("-C"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), std::string(64, 'a')}) {
    EXPECT_FALSE(isDriverName(name)) << name;
  }
}

}  // namespace

}  // namespace vfpass
