// withLeases() and its inverse: nothing of anybody else changes, whatever the XML looks like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace vfpass::domain {
namespace {

const Templates& templates() { return builtInTemplates(); }

class EveryCase : public testing::TestWithParam<const char*> {};

TEST_P(EveryCase, ComesBackByteForByte) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(xml);
  const auto with = withLeases(xml, leases, templates());
  EXPECT_NE(with, xml);
  EXPECT_TRUE(carriesLeases(with, leases));
  EXPECT_FALSE(carriesLeases(with, {}));
  EXPECT_EQ(withLeases(with, {}, templates()), xml);
}

TEST_P(EveryCase, WithoutLeasesNothingChanges) {
  const auto xml = readCase(GetParam());
  EXPECT_EQ(withLeases(xml, {}, templates()), xml);
  EXPECT_TRUE(carriesLeases(xml, {}));
}

TEST_P(EveryCase, SecondAttachChangesNothing) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(xml);
  const auto once = withLeases(xml, leases, templates());
  EXPECT_EQ(withLeases(once, leases, templates()), once);
}

TEST_P(EveryCase, NoByteOfTheOriginalIsLost) {
  const auto xml = readCase(GetParam());
  const auto with = withLeases(xml, sampleLeases(xml), templates());
  std::size_t at = 0;  // the original must be a subsequence of the result
  for (const char character : with) {
    at += at < xml.size() && xml[at] == character ? 1U : 0U;
  }
  EXPECT_TRUE(at == xml.size() || std::string(GetParam()) == "empty-metadata.xml");
}

TEST_P(EveryCase, RandomLeasesSurvive) {
  const auto xml = readCase(GetParam());
  std::mt19937 random(20240521);
  for (int round = 0; round < 40; ++round) {
    auto leases = randomLeases(random, 1 + static_cast<std::size_t>(round) % 9);
    const auto with = withLeases(xml, leases, templates());
    const auto parsed = parseDomain(with);
    for (auto& lease : leases) {
      lease.domainName = parsed.name;
    }
    EXPECT_EQ(parsed.leases, leases);
    EXPECT_TRUE(parsed.managed);
    EXPECT_FALSE(parsed.foreignMetadata);
    EXPECT_TRUE(carriesLeases(with, leases));
    EXPECT_THAT(claimDifferences(parsed, leases), testing::IsEmpty());
    EXPECT_EQ(withLeases(with, {}, templates()), xml);
    const auto others = randomLeases(random, 2);
    EXPECT_FALSE(carriesLeases(with, others));
    EXPECT_EQ(withLeases(with, others, templates()), withLeases(xml, others, templates()));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryCase,
                         testing::Values("q35.xml", "foreign-metadata.xml", "i440fx.xml",
                                         "one-line.xml", "odd-formatting.xml", "empty-metadata.xml",
                                         "libvirt-before.xml"));

TEST(LibvirtFormatting, OursIsKnownAgainAndLeavesNothingBehind) {
  const auto before = readCase("libvirt-before.xml");
  const auto attached = readCase("libvirt-attached.xml");
  const auto leases = sampleLeases(before);
  EXPECT_EQ(parseDomain(attached).leases, leases);
  EXPECT_TRUE(carriesLeases(attached, leases));
  EXPECT_EQ(withLeases(attached, {}, templates()), before);
}

// What the QEMU driver adds on top of the test driver that printed the case.
TEST(LibvirtFormatting, AdditionsOfTheQemuDriverAreTolerated) {
  const auto before = readCase("libvirt-before.xml");
  auto attached = readCase("libvirt-attached.xml");
  attached = replaced(attached, "<controller type='pci' index='3' model='pcie-root-port'>",
                      "<controller type='pci' index='3' model='pcie-root-port'>\n"
                      "      <model name='pcie-root-port'/>\n"
                      "      <target chassis='3' port='0x20'/>");
  attached = replaced(attached, "<hostdev mode='subsystem' type='pci' managed='no'>",
                      "<hostdev mode='subsystem' type='pci' managed='no'>\n"
                      "      <driver name='vfio'/>");
  EXPECT_TRUE(carriesLeases(attached, sampleLeases(before)));
  EXPECT_EQ(withLeases(attached, {}, templates()), before);
}

TEST(Metadata, ContainerStaysWhenOthersMovedIn) {
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), templates());
  const auto shared = replaced(with, "<metadata>\n", "<metadata>\n    <a:b xmlns:a='urn:a'/>\n");
  const auto without = withLeases(shared, {}, templates());
  EXPECT_EQ(without, replaced(xml, "</uuid>",
                              "</uuid>\n  <metadata>\n    <a:b xmlns:a='urn:a'/>\n  </metadata>"));
}

TEST(Metadata, AnotherPrefixIsStillOurs) {
  const auto xml = readCase("q35.xml");
  auto with = withLeases(xml, sampleLeases(xml), templates());
  for (auto at = with.find("vfpass:"); at != std::string::npos; at = with.find("vfpass:", at)) {
    with.replace(at, 7, "v:");
  }
  with = replaced(with, "xmlns:vfpass=", "xmlns:v=");
  EXPECT_TRUE(carriesLeases(with, sampleLeases(xml)));
  EXPECT_EQ(withLeases(with, {}, templates()), xml);
}

TEST(Metadata, OfACopiedDomainIsForeign) {
  const auto xml = readCase("q35.xml");
  const auto leases = sampleLeases(xml);
  const auto copy = replaced(withLeases(xml, leases, templates()), "<uuid>1111", "<uuid>aaaa");
  const auto parsed = parseDomain(copy);
  EXPECT_TRUE(parsed.managed);
  EXPECT_TRUE(parsed.foreignMetadata);
  EXPECT_EQ(parsed.leases.at(0).domain, caseUuid());
  EXPECT_NE(parsed.uuid, caseUuid());
  EXPECT_FALSE(carriesLeases(copy, leases));
  EXPECT_EQ(withLeases(copy, {}, templates()), replaced(xml, "<uuid>1111", "<uuid>aaaa"));
}

TEST(RootPort, StaysWhileSomebodyElseUsesIt) {
  const auto xml = readCase("q35.xml");
  const auto leases = sampleLeases(xml);
  const std::string foreign =
      "\n    <sound model='ich9'>\n      <address type='pci' domain='0x0000' bus='0x03' "
      "slot='0x00' "
      "function='0x1'/>\n    </sound>";
  const auto with = replaced(withLeases(xml, leases, templates()), "\n    <memballoon",
                             foreign + "\n    <memballoon");
  EXPECT_TRUE(carriesLeases(with, leases));
  EXPECT_EQ(withLeases(with, leases, templates()), with);

  const auto without = withLeases(with, {}, templates());
  EXPECT_NE(without.find("<controller type='pci' index='3'"), std::string::npos);
  EXPECT_EQ(without.find("<controller type='pci' index='4'"), std::string::npos);
  EXPECT_EQ(without.find("ua-vfpass"), std::string::npos);
  EXPECT_TRUE(carriesLeases(without, {}));
}

TEST(RootPort, Function0StaysForTheOthersOfItsSlot) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[0].guest.port = RootPort{3, {0, 0, 8, 0}, true};
  leases[1].guest.port = RootPort{4, {0, 0, 8, 1}, false};
  const auto with = replaced(withLeases(xml, leases, templates()), "\n    <memballoon",
                             "\n    <sound model='ich9'><address type='pci' bus='0x04' "
                             "function='0x1'/></sound>\n    <memballoon");
  const auto without = withLeases(with, {}, templates());
  EXPECT_NE(without.find("<controller type='pci' index='3'"), std::string::npos);
  EXPECT_NE(without.find("<controller type='pci' index='4'"), std::string::npos);
}

TEST(WithLeases, PutsEachElementWhereItsKindStands) {
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), templates());
  EXPECT_NE(with.find("    <controller type='pci' index='3' model='pcie-root-port'>\n"
                      "      <alias name='ua-vfpass-port-rail0'/>\n"
                      "      <address type='pci' domain='0x0000' bus='0x00' slot='0x04' "
                      "function='0x0'/>\n"
                      "    </controller>\n"),
            std::string::npos);
  EXPECT_NE(with.find("    <hostdev mode='subsystem' type='pci' managed='no'>\n"
                      "      <source>\n"
                      "        <address domain='0x0000' bus='0x3b' slot='0x00' function='0x2'/>\n"
                      "      </source>\n"
                      "      <teaming type='transient' persistent='ua-net0'/>\n"
                      "      <alias name='ua-vfpass-rail0'/>\n"
                      "      <address type='pci' domain='0x0000' bus='0x03' slot='0x00' "
                      "function='0x0'/>\n"
                      "    </hostdev>\n    <memballoon"),
            std::string::npos);
  EXPECT_NE(with.find("    <interface type='hostdev' managed='no'>\n"
                      "      <mac address='02:00:00:00:00:01'/>\n"
                      "      <source>\n"
                      "        <address type='pci' domain='0x0000' bus='0x3b' slot='0x00' "
                      "function='0x3'/>\n"
                      "      </source>\n"
                      "      <vlan>\n        <tag id='100'/>\n      </vlan>\n"),
            std::string::npos);
}

TEST(WithLeases, LeavesOutWhatTheLeaseDoesNotSay) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[1].settings.mac.reset();
  leases[1].settings.vlan->id = 0;
  leases[1].teamingWith.reset();
  leases[1].managed = true;
  const auto with = withLeases(xml, leases, templates());
  EXPECT_NE(with.find("<interface type='hostdev' managed='yes'>\n      <source>"),
            std::string::npos);
  EXPECT_EQ(with.find("<vlan>"), std::string::npos);
  EXPECT_TRUE(carriesLeases(with, leases));
}

TEST(WithLeases, RefusesALeaseOfAnotherDomain) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[0].domain.bytes[0] = 0xff;
  EXPECT_THROW(withLeases(xml, leases, templates()), Error);
}

TEST(WithLeases, RefusesNamesThatShareAnAlias) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[1].vfName = "port-rail0";
  EXPECT_THROW(withLeases(xml, leases, templates()), Error);
}

TEST(WithLeases, RefusesASlotWithoutFunction0) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[0].guest.port->address = {0, 0, 8, 0};
  leases[1].guest.port->address = {0, 0, 8, 1};
  EXPECT_NO_THROW(withLeases(xml, leases, templates()));
  EXPECT_THROW(withLeases(xml, {leases[1]}, templates()), Error);
}

TEST(WithLeases, RefusesADomainWithoutDevices) {
  const std::string xml =
      "<domain><name>a</name><uuid>" + toString(caseUuid()) + "</uuid><devices/></domain>";
  const auto leases = sampleLeases(readCase("q35.xml"));
  EXPECT_THROW(withLeases(xml, leases, templates()), Error);
  EXPECT_EQ(withLeases(xml, {}, templates()), xml);
}

TEST(TemplateFiles, AnAdditionReachesTheGuest) {
  auto own = builtInTemplates();
  own.hostdev = replaced(own.hostdev, "</source>", "</source><rom bar='off'/>");
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), own);
  EXPECT_NE(with.find("      <rom bar='off'/>\n"), std::string::npos);
  EXPECT_TRUE(carriesLeases(with, sampleLeases(xml)));
}

TEST(TemplateFiles, WhatCannotBeFilledIsRefused) {
  const auto xml = readCase("q35.xml");
  for (const char* hostdev :
       {"", "<hostdev", "<interface/>", "<hostdev/>", "<hostdev><source/></hostdev>",
        "<hostdev><source><address/></source><address/></hostdev>", "<!DOCTYPE a><hostdev/>"}) {
    auto own = builtInTemplates();
    own.hostdev = hostdev;
    EXPECT_THROW(withLeases(xml, sampleLeases(xml), own), Error) << hostdev;
  }
}

}  // namespace
}  // namespace vfpass::domain
