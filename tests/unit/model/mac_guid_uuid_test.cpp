#include "vfpass/mac_guid_uuid.hpp"

#include <gtest/gtest.h>

#include "vfpass/hypervisor.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {
namespace {

TEST(PciAddress, ParsesKernelAndShortForm) {
  EXPECT_EQ(toString(*parsePciAddress("0000:3B:1f.7")), "0000:3b:1f.7");
  EXPECT_EQ(toString(*parsePciAddress("3b:00.1")), "0000:3b:00.1");
  EXPECT_EQ(toString(*parsePciAddress("10000:e1:00.0")), "10000:e1:00.0");
}

TEST(PciAddress, RejectsAnyOtherForm) {
  for (const char* bad :
       {"", "0000:3b:20.0", "0000:3b:00.8", "0000:3b:00", "3b:00.1.0", "0:3b:00.0", "0000:3b:0.0",
        "000000000:3b:00.0", "0000:3b:00.0 ", "0000::00.0"}) {
    EXPECT_FALSE(parsePciAddress(bad)) << bad;
  }
}

TEST(MacAddress, ParsesColonsAndDashes) {
  EXPECT_EQ(toString(*parseMacAddress("AA-bb-CC-00-11-22")), "aa:bb:cc:00:11:22");
  for (const char* bad : {"", "aa:bb:cc:00:11", "aa:bb:cc:00:11:2g", "aa:bb-cc:00:11:22",
                          "aabbcc001122", "aa:bb:cc:00:11:22:33"}) {
    EXPECT_FALSE(parseMacAddress(bad)) << bad;
  }
}

TEST(Guid, ParsesFourForms) {
  for (const char* text : {"00:11:22:33:44:55:01:00", "00-11-22-33-44-55-01-00",
                           "0011:2233:4455:0100", "0x0011223344550100"}) {
    ASSERT_TRUE(parseGuid(text)) << text;
    EXPECT_EQ(toString(*parseGuid(text)), "00:11:22:33:44:55:01:00");
  }
  EXPECT_FALSE(parseGuid("0011223344550100"));
  EXPECT_FALSE(Guid{0}.isUsable());
  EXPECT_FALSE(Guid{~std::uint64_t{0}}.isUsable());
}

TEST(Uuid, ParsesWithAndWithoutDashes) {
  const char* text = "0f5e9a3c-1111-4222-8333-944455566677";
  EXPECT_EQ(toString(*parseUuid(text)), text);
  EXPECT_EQ(parseUuid("0F5E9A3C111142228333944455566677"), parseUuid(text));
  EXPECT_FALSE(parseUuid("0f5e9a3c-1111-4222-8333-94445556667"));
  EXPECT_FALSE(parseUuid("0f5e9a3c1-111-4222-8333-944455566677"));
}

TEST(VfSettings, ListsDifferingAttributesInKernelOrder) {
  VfSettings wanted;
  wanted.trust = true;
  wanted.mac = parseMacAddress("02:00:00:00:00:01");
  VfSettings seen;
  seen.trust = false;
  EXPECT_EQ(differingAttributes(wanted, seen),
            (std::vector<Attribute>{Attribute::mac, Attribute::trust}));
  seen = wanted;
  seen.vlan = Vlan{5, 0, VlanProtocol::dot1q};
  EXPECT_TRUE(differingAttributes(wanted, seen).empty())
      << "attributes that are not requested do not differ";
}

TEST(VfSettings, AttributeNamesRoundTrip) {
  for (const Attribute attribute : allAttributes) {
    EXPECT_EQ(parseAttribute(toString(attribute)), attribute);
  }
  EXPECT_FALSE(parseAttribute("spoofcheck"));
}

TEST(Hypervisor, AcceptsOnlySystemDaemonOfThisHostAsLocal) {
  EXPECT_TRUE(isLocalSystem("qemu:///system"));
  for (const char* other :
       {"test:///default", "qemu:///session", "qemu:///embed", "qemu+ssh://host/system",
        "qemu+tcp://localhost/system", "qemu:///system?socket=/tmp/other", "xen:///system",
        "qemu://host/system", ""}) {
    EXPECT_FALSE(isLocalSystem(other)) << other;
  }
}

}  // namespace
}  // namespace vfpass
