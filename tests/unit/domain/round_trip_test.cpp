// withLeases() and its inverse leave all other content unchanged, whatever the XML looks like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

const Templates& templates() { return builtInTemplates(); }

class EveryCase : public testing::TestWithParam<const char*> {};

TEST_P(EveryCase, IsRestoredByteForByte) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(xml);
  const auto with = withLeases(xml, leases, templates(), fake::sealKey());
  EXPECT_NE(with, xml);
  EXPECT_TRUE(carriesLeases(with, leases, fake::sealKey()));
  EXPECT_FALSE(carriesLeases(with, {}, fake::sealKey()));
  EXPECT_EQ(withLeases(with, {}, templates(), fake::sealKey()), xml);
}

TEST_P(EveryCase, IsUnchangedWithoutLeases) {
  const auto xml = readCase(GetParam());
  EXPECT_EQ(withLeases(xml, {}, templates(), fake::sealKey()), xml);
  EXPECT_TRUE(carriesLeases(xml, {}, fake::sealKey()));
}

TEST_P(EveryCase, IsUnchangedBySecondAttach) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(xml);
  const auto once = withLeases(xml, leases, templates(), fake::sealKey());
  EXPECT_EQ(withLeases(once, leases, templates(), fake::sealKey()), once);
}

TEST_P(EveryCase, KeepsEveryByteOfTheOriginal) {
  const auto xml = readCase(GetParam());
  const auto with = withLeases(xml, sampleLeases(xml), templates(), fake::sealKey());
  std::size_t at = 0;  // the original must be a subsequence of the result
  for (const char character : with) {
    at += at < xml.size() && xml[at] == character ? 1U : 0U;
  }
  EXPECT_TRUE(at == xml.size() || std::string(GetParam()) == "empty-metadata.xml");
}

TEST_P(EveryCase, PreservesRandomLeases) {
  const auto xml = readCase(GetParam());
  std::mt19937 random(20240521);
  for (int round = 0; round < 40; ++round) {
    auto leases = randomLeases(random, 1 + static_cast<std::size_t>(round) % 9);
    const auto with = withLeases(xml, leases, templates(), fake::sealKey());
    const auto parsed = parseDomain(with);
    for (auto& lease : leases) {
      lease.domainName = parsed.name;
    }
    EXPECT_EQ(parsed.leases, leases);
    EXPECT_TRUE(parsed.managed);
    EXPECT_FALSE(parsed.foreignMetadata);
    EXPECT_TRUE(carriesLeases(with, leases, fake::sealKey()));
    EXPECT_THAT(elementDifferences(with, leases), testing::IsEmpty());
    EXPECT_EQ(withLeases(with, {}, templates(), fake::sealKey()), xml);
    const auto others = randomLeases(random, 2);
    EXPECT_FALSE(carriesLeases(with, others, fake::sealKey()));
    EXPECT_EQ(withLeases(with, others, templates(), fake::sealKey()),
              withLeases(xml, others, templates(), fake::sealKey()));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryCase,
                         testing::Values("q35.xml", "foreign-metadata.xml", "i440fx.xml",
                                         "one-line.xml", "odd-formatting.xml", "empty-metadata.xml",
                                         "libvirt-before.xml"));

TEST(LibvirtFormatting, IsRecognizedAndRemovedCompletely) {
  const auto before = readCase("libvirt-before.xml");
  const auto attached = readCase("libvirt-attached.xml");
  const auto leases = sampleLeases(before);
  EXPECT_EQ(parseDomain(attached).leases, leases);
  EXPECT_THAT(elementDifferences(attached, leases), testing::IsEmpty());
  EXPECT_TRUE(carriesLeases(attached, leases, fake::sealKey()));
  EXPECT_EQ(withLeases(attached, {}, templates(), fake::sealKey()), before);
}

// Additions of the QEMU driver; the case was printed by the test driver.
TEST(LibvirtFormatting, ToleratesAdditionsOfTheQemuDriver) {
  const auto before = readCase("libvirt-before.xml");
  auto attached = readCase("libvirt-attached.xml");
  attached = replaced(attached, "<controller type='pci' index='3' model='pcie-root-port'>",
                      "<controller type='pci' index='3' model='pcie-root-port'>\n"
                      "      <model name='pcie-root-port'/>\n"
                      "      <target chassis='3' port='0x20'/>");
  attached = replaced(attached, "<hostdev mode='subsystem' type='pci' managed='no'>",
                      "<hostdev mode='subsystem' type='pci' managed='no'>\n"
                      "      <driver name='vfio'/>");
  EXPECT_TRUE(carriesLeases(attached, sampleLeases(before), fake::sealKey()));
  EXPECT_EQ(withLeases(attached, {}, templates(), fake::sealKey()), before);
}

TEST(Metadata, KeepsContainerWithForeignElements) {
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), templates(), fake::sealKey());
  const auto shared = replaced(with, "<metadata>\n", "<metadata>\n    <a:b xmlns:a='urn:a'/>\n");
  const auto without = withLeases(shared, {}, templates(), fake::sealKey());
  EXPECT_EQ(without, replaced(xml, "</uuid>",
                              "</uuid>\n  <metadata>\n    <a:b xmlns:a='urn:a'/>\n  </metadata>"));
}

TEST(Metadata, AcceptsAnotherPrefix) {
  const auto xml = readCase("q35.xml");
  auto with = withLeases(xml, sampleLeases(xml), templates(), fake::sealKey());
  for (auto at = with.find("vfpass:"); at != std::string::npos; at = with.find("vfpass:", at)) {
    with.replace(at, 7, "v:");
  }
  with = replaced(with, "xmlns:vfpass=", "xmlns:v=");
  EXPECT_TRUE(carriesLeases(with, sampleLeases(xml), fake::sealKey()));
  EXPECT_EQ(withLeases(with, {}, templates(), fake::sealKey()), xml);
}

TEST(Metadata, IsForeignInACopiedDomain) {
  const auto xml = readCase("q35.xml");
  const auto leases = sampleLeases(xml);
  const auto copy =
      replaced(withLeases(xml, leases, templates(), fake::sealKey()), "<uuid>1111", "<uuid>aaaa");
  const auto parsed = parseDomain(copy);
  EXPECT_TRUE(parsed.managed);
  EXPECT_TRUE(parsed.foreignMetadata);
  EXPECT_EQ(parsed.leases.at(0).domain, caseUuid());
  EXPECT_NE(parsed.uuid, caseUuid());
  EXPECT_FALSE(carriesLeases(copy, leases, fake::sealKey()));
  EXPECT_EQ(withLeases(copy, {}, templates(), fake::sealKey()),
            replaced(xml, "<uuid>1111", "<uuid>aaaa"));
}

TEST(RootPort, StaysWhileAForeignDeviceUsesIt) {
  const auto xml = readCase("q35.xml");
  const auto leases = sampleLeases(xml);
  const std::string foreign =
      "\n    <sound model='ich9'>\n      <address type='pci' domain='0x0000' bus='0x03' "
      "slot='0x00' "
      "function='0x1'/>\n    </sound>";
  const auto with = replaced(withLeases(xml, leases, templates(), fake::sealKey()),
                             "\n    <memballoon", foreign + "\n    <memballoon");
  EXPECT_TRUE(carriesLeases(with, leases, fake::sealKey()));
  EXPECT_EQ(withLeases(with, leases, templates(), fake::sealKey()), with);

  const auto without = withLeases(with, {}, templates(), fake::sealKey());
  EXPECT_NE(without.find("<controller type='pci' index='3'"), std::string::npos);
  EXPECT_EQ(without.find("<controller type='pci' index='4'"), std::string::npos);
  EXPECT_EQ(without.find("ua-vfpass"), std::string::npos);
  EXPECT_TRUE(carriesLeases(without, {}, fake::sealKey()));
}

TEST(RootPort, KeepsFunction0OfASharedSlot) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[0].guest.port = RootPort{3, {0, 0, 8, 0}, true};
  leases[1].guest.port = RootPort{4, {0, 0, 8, 1}, false};
  const auto with =
      replaced(withLeases(xml, leases, templates(), fake::sealKey()), "\n    <memballoon",
               "\n    <sound model='ich9'><address type='pci' bus='0x04' "
               "function='0x1'/></sound>\n    <memballoon");
  const auto without = withLeases(with, {}, templates(), fake::sealKey());
  EXPECT_NE(without.find("<controller type='pci' index='3'"), std::string::npos);
  EXPECT_NE(without.find("<controller type='pci' index='4'"), std::string::npos);
}

TEST(WithLeases, InsertsElementsAfterTheirKind) {
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), templates(), fake::sealKey());
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

TEST(WithLeases, OmitsUnsetMembers) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  vfOf(leases[1]).settings.mac.reset();
  vfOf(leases[1]).settings.vlan->id = 0;
  vfOf(leases[1]).teamingWith.reset();
  leases[1].managed = true;
  const auto with = withLeases(xml, leases, templates(), fake::sealKey());
  EXPECT_NE(with.find("<interface type='hostdev' managed='yes'>\n      <source>"),
            std::string::npos);
  EXPECT_EQ(with.find("<vlan>"), std::string::npos);
  EXPECT_TRUE(carriesLeases(with, leases, fake::sealKey()));
}

TEST(WithLeases, RefusesLeaseOfAnotherDomain) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[0].domain.bytes[0] = 0xff;
  EXPECT_THROW(withLeases(xml, leases, templates(), fake::sealKey()), Error);
}

TEST(WithLeases, RefusesLeasesWithTheSameAlias) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[1].entry = "port-rail0";
  EXPECT_THROW(withLeases(xml, leases, templates(), fake::sealKey()), Error);
}

TEST(WithLeases, RefusesSlotWithoutFunction0) {
  const auto xml = readCase("q35.xml");
  auto leases = sampleLeases(xml);
  leases[0].guest.port->address = {0, 0, 8, 0};
  leases[1].guest.port->address = {0, 0, 8, 1};
  EXPECT_NO_THROW(withLeases(xml, leases, templates(), fake::sealKey()));
  EXPECT_THROW(withLeases(xml, {leases[1]}, templates(), fake::sealKey()), Error);
}

TEST(WithLeases, RefusesDomainWithoutDevices) {
  const std::string xml =
      "<domain><name>a</name><uuid>" + toString(caseUuid()) + "</uuid><devices/></domain>";
  const auto leases = sampleLeases(readCase("q35.xml"));
  EXPECT_THROW(withLeases(xml, leases, templates(), fake::sealKey()), Error);
  EXPECT_EQ(withLeases(xml, {}, templates(), fake::sealKey()), xml);
}

TEST(TemplateFiles, AdditionReachesTheDomainXml) {
  auto own = builtInTemplates();
  own.hostdev = replaced(own.hostdev, "</source>", "</source><rom bar='off'/>");
  const auto xml = readCase("q35.xml");
  const auto with = withLeases(xml, sampleLeases(xml), own, fake::sealKey());
  EXPECT_NE(with.find("      <rom bar='off'/>\n"), std::string::npos);
  EXPECT_TRUE(carriesLeases(with, sampleLeases(xml), fake::sealKey()));
}

TEST(TemplateFiles, RefusesIncompleteTemplates) {
  const auto xml = readCase("q35.xml");
  for (const char* hostdev :
       {"", "<hostdev", "<interface/>", "<hostdev/>", "<hostdev><source/></hostdev>",
        "<hostdev><source><address/></source><address/></hostdev>", "<!DOCTYPE a><hostdev/>"}) {
    auto own = builtInTemplates();
    own.hostdev = hostdev;
    EXPECT_THROW(withLeases(xml, sampleLeases(xml), own, fake::sealKey()), Error) << hostdev;
  }
}

}  // namespace
}  // namespace vfpass::domain
