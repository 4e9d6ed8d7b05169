#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

struct Fixture {
  std::string xml = readCase("q35.xml");
  std::vector<Lease> leases = sampleLeases(xml);
  std::string with = withLeases(xml, leases, builtInTemplates(), fake::sealKey());
};

TEST(CarriesLeases, IgnoresStateBootIdDomainNameAndOrder) {
  Fixture fixture;
  fixture.leases[0].state = LeaseState::running;
  fixture.leases[0].bootId = "another";
  fixture.leases[0].activatedPartition = true;
  fixture.leases[0].domainName = "renamed";
  std::swap(fixture.leases[0], fixture.leases[1]);
  EXPECT_TRUE(carriesLeases(fixture.with, fixture.leases, fake::sealKey()));
}

TEST(CarriesLeases, DetectsEveryChangeOfALease) {
  const Fixture fixture;
  const auto differs = [&fixture](auto change) {
    auto leases = fixture.leases;
    change(leases[0]);
    return !carriesLeases(fixture.with, leases, fake::sealKey());
  };
  EXPECT_TRUE(differs([](Lease& lease) { lease.generation++; }));
  EXPECT_TRUE(differs([](Lease& lease) { vfOf(lease).settings.trust = true; }));
  EXPECT_TRUE(differs([](Lease& lease) { lease.original.driver = "other"; }));
  EXPECT_TRUE(differs([](Lease& lease) { vfOf(lease).required.clear(); }));
  EXPECT_TRUE(differs([](Lease& lease) { vfOf(lease).teamingWith.reset(); }));
  EXPECT_TRUE(differs([](Lease& lease) { lease.domain.bytes[3] = 1; }));
  EXPECT_FALSE(differs([](Lease& lease) { vfOf(lease).refused = {Attribute::rate}; }))
      << "a start learns it, and the hook cannot change the XML";
  EXPECT_FALSE(carriesLeases(fixture.with, {fixture.leases[0]}, fake::sealKey()));
  EXPECT_FALSE(carriesLeases(fixture.xml, fixture.leases, fake::sealKey()));
}

struct Edit {
  const char* from;
  const char* to;
};

class EditedXml : public testing::TestWithParam<Edit> {};

TEST_P(EditedXml, DoesNotCarryTheLeases) {
  const Fixture fixture;
  EXPECT_FALSE(carriesLeases(replaced(fixture.with, GetParam().from, GetParam().to), fixture.leases,
                             fake::sealKey()));
}

INSTANTIATE_TEST_SUITE_P(
    All, EditedXml,
    testing::Values(
        Edit{"<alias name='ua-vfpass-rail0'/>", ""},
        Edit{"<alias name='ua-vfpass-rail0'/>", "<alias name='ua-vfpass-rail7'/>"},
        Edit{"<alias name='ua-vfpass-port-rail1'/>", ""},
        Edit{"bus='0x3b' slot='0x00' function='0x2'", "bus='0x3b' slot='0x00' function='0x4'"},
        Edit{"bus='0x03' slot='0x00' function='0x0'", "bus='0x07' slot='0x00' function='0x0'"},
        Edit{"slot='0x04' function='0x0'", "slot='0x14' function='0x0'"},
        Edit{"slot='0x04' function='0x0'", "slot='0x04' function='0x0' multifunction='on'"},
        Edit{"index='3' model='pcie-root-port'", "index='9' model='pcie-root-port'"},
        Edit{"index='3' model='pcie-root-port'", "index='3' model='pcie-expander-bus'"},
        Edit{"type='pci' managed='no'", "type='pci' managed='yes'"},
        Edit{"<tag id='100'/>", "<tag id='101'/>"},
        Edit{"<mac address='02:00:00:00:00:01'/>", "<mac address='02:00:00:00:00:02'/>"},
        Edit{"<tag id='100'/>", "<tag id='100'/><tag id='101'/>"},
        Edit{"<tag id='100'/>", "<tag id='100' nativeMode='untagged'/>"},
        Edit{"<vlan>", "<vlan trunk='yes'>"}, Edit{"<vlan>", "<vlan><tag id='100'/></vlan><vlan>"},
        Edit{"<mac address='02:00:00:00:00:01'/>",
             "<mac address='02:00:00:00:00:01' type='static'/>"},
        Edit{"<interface type='hostdev'", "<interface type='network'"},
        Edit{"<interface type='hostdev'", "<interface type='hostdev' trustGuestRxFilters='yes'"},
        Edit{"<vlan>", "<bandwidth><inbound average='1'/></bandwidth><vlan>"},
        Edit{"<vlan>", "<link state='down'/><vlan>"},
        Edit{"<vlan>", "<filterref filter='clean-traffic'/><vlan>"},
        Edit{"<vlan>",
             "<virtualport type='802.1Qbh'><parameters profileid='x'/></virtualport><vlan>"},
        Edit{"<vlan>", "<driver name='kvm'/><vlan>"},
        Edit{"<vlan>", "<driver name='vfio' model='mlx5_vfio_pci'/><vlan>"},
        Edit{"<vlan>", "<rom file='/etc/shadow'/><vlan>"},
        Edit{"<vlan>", "<rom bar='on' file='/etc/shadow'/><vlan>"},
        Edit{"<source>", "<source writeFiltering='no'>"},
        Edit{"<source>", "<source startupPolicy='optional'>"},
        Edit{"<tag id='100'/>", "<tag id='100' nativeMode='tagged'/>"}, Edit{"<tag id='100'/>", ""},
        Edit{"<mac address='02:00:00:00:00:01'/>", ""},
        Edit{"bus='0x3b' slot='0x00' function='0x3'", "bus='0x3b' slot='0x00' function='0x5'"},
        Edit{"bus='0x3b' slot='0x00' function='0x3'/>",
             "bus='0x3b' slot='0x00' function='0x3'/><address bus='1'/>"},
        Edit{"<address type='pci' domain='0x0000' bus='0x3b'",
             "<address type='usb' domain='0x0000' bus='0x3b'"},
        Edit{"bus='0x04' slot='0x00' function='0x0'", "bus='0x04' slot='0x00' function='0x1'"},
        Edit{"<interface type='hostdev' managed='no'", "<interface type='hostdev' managed='yes'"},
        Edit{"<vlan>", "<driver name='vfio' iommufd='yes'/><vlan>"},
        Edit{"<vlan>", "<target dev='tap0' managed='no'/><vlan>"},
        Edit{"<vlan>", "<port isolated='yes'/><vlan>"}, Edit{"<vlan>", "<mtu size='9000'/><vlan>"},
        Edit{"<vlan>", "<virtualport type='802.1Qbg'/><vlan>"}, Edit{"<vlan>", "text<vlan>"},
        Edit{"<hostdev mode='subsystem' type='pci' managed='no'",
             "<hostdev mode='capabilities' type='pci' managed='no'"},
        Edit{"<alias name='ua-vfpass-rail0'/>",
             "<alias name='ua-vfpass-rail0'/><vlan><tag id='7'/></vlan>"},
        Edit{"<alias name='ua-vfpass-rail0'/>",
             "<alias name='ua-vfpass-rail0'/>"
             "<mac address='02:00:00:00:00:09'/>"},
        Edit{"<alias name='ua-vfpass-rail0'/>", "<alias name='ua-vfpass-rail0'/><rom file='/x'/>"},
        Edit{"<alias name='ua-vfpass-rail0'/>",
             "<alias name='ua-vfpass-rail0'/>"
             "<driver name='xen'/>"},
        Edit{"<teaming type='transient' persistent='ua-net0'/>", ""},
        Edit{"<teaming type='transient'", "<teaming type='persistent'"},
        Edit{"persistent='ua-net0'", "persistent='ua-net1'"},
        Edit{"<memballoon model='none'/>",
             "<sound model='ac97'><alias name='ua-vfpass-stray'/></sound>"},
        Edit{"<memballoon model='none'/>",
             "<hostdev type='pci'><source><address bus='1'/></source>"
             "<alias name='ua-vfpass-rail0'/></hostdev>"}));

// A VF that migrates: the driver is part of the element, as a <hostdev> and as an <interface>.
TEST(CarriesLeases, RequiresTheDriverOfAMigratingVf) {
  Fixture fixture;
  for (auto& lease : fixture.leases) {
    vfOf(lease).teamingWith.reset();
    vfOf(lease).migrationDriver = "mlx5_vfio_pci";
  }
  const std::string with =
      withLeases(fixture.xml, fixture.leases, builtInTemplates(), fake::sealKey());
  EXPECT_TRUE(carriesLeases(with, fixture.leases, fake::sealKey()));
  EXPECT_EQ(withLeases(with, {}, builtInTemplates(), fake::sealKey()), fixture.xml);
  const std::string element = "<driver name='vfio' model='mlx5_vfio_pci'/>";
  const auto differences = [&](const std::string& instead) {
    return elementDifferences(replaced(with, element, instead), fixture.leases);
  };
  EXPECT_THAT(differences(element), testing::IsEmpty());
  EXPECT_THAT(
      differences(""),
      testing::ElementsAre(testing::HasSubstr("the XML has no <driver>, the lease records one")));
  EXPECT_THAT(differences("<driver name='vfio'/>"), testing::SizeIs(1));
  EXPECT_THAT(differences("<driver name='vfio' model='vfio-pci'/>"), testing::SizeIs(1));
  vfOf(fixture.leases[0]).migrationDriver.reset();
  EXPECT_THAT(elementDifferences(with, fixture.leases), testing::SizeIs(1))
      << "a VF that does not migrate has no such driver";
}

class LibvirtsXml : public testing::TestWithParam<Edit> {};

// What libvirt adds by itself, and what affects only the guest.
TEST_P(LibvirtsXml, CarriesTheLeases) {
  const Fixture fixture;
  EXPECT_THAT(
      elementDifferences(replaced(fixture.with, GetParam().from, GetParam().to), fixture.leases),
      testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, LibvirtsXml,
    testing::Values(Edit{"<vlan>", "<driver name='vfio'/><vlan>"},
                    Edit{"<vlan>", "<driver name='vfio' model='vfio-pci'/><vlan>"},
                    Edit{"<vlan>", "<boot order='1'/><vlan>"},
                    Edit{"<vlan>", "<rom bar='off'/><vlan>"},
                    Edit{"<vlan>", "<rom enabled='no'/><vlan>"},
                    Edit{"<vlan>", "<acpi index='7'/><vlan>"},
                    Edit{"<vlan>", "<target dev='testnet1'/><vlan>"},
                    Edit{"<vlan>", "<!-- a comment --><vlan>"},
                    Edit{"<interface type='hostdev' managed='no'", "<interface type='hostdev'"}));

TEST(ElementDifferences, NamesTheOtherKindOfElement) {
  const Fixture fixture;
  auto swapped = fixture.leases;
  vfOf(swapped[0]).interfaceForm = true;
  vfOf(swapped[1]).interfaceForm = false;
  const auto xml = withLeases(fixture.xml, swapped, builtInTemplates(), fake::sealKey());
  EXPECT_THAT(
      elementDifferences(xml, fixture.leases),
      testing::ElementsAre("VF 'rail0': the XML has <interface>, the lease records <hostdev>",
                           "VF 'rail1': the XML has <hostdev>, the lease records <interface>"));
}

TEST(CarriesLeases, AcceptsTheMacThatLibvirtGenerates) {
  Fixture fixture;
  vfOf(fixture.leases[1]).settings.mac.reset();
  const auto with = withLeases(fixture.xml, fixture.leases, builtInTemplates(), fake::sealKey());
  EXPECT_TRUE(carriesLeases(replaced(with, "<vlan>", "<mac address='52:54:00:00:00:01'/><vlan>"),
                            fixture.leases, fake::sealKey()));
}

TEST(CarriesLeases, RefusesAVlanThatTheLeaseDoesNotHave) {
  Fixture fixture;
  vfOf(fixture.leases[1]).settings.vlan.reset();
  const auto with = withLeases(fixture.xml, fixture.leases, builtInTemplates(), fake::sealKey());
  ASSERT_TRUE(carriesLeases(with, fixture.leases, fake::sealKey()));
  EXPECT_THAT(elementDifferences(replaced(with, "<alias name='ua-vfpass-rail1'/>",
                                          "<vlan><tag id='7'/></vlan>"
                                          "<alias name='ua-vfpass-rail1'/>"),
                                 fixture.leases),
              testing::ElementsAre("VF 'rail1': the XML has <vlan>, the lease records none"));
}

TEST(ElementDifferences, NamesEachDifference) {
  Fixture fixture;
  auto& leases = fixture.leases;
  leases[0].device.function = 5;
  leases[0].guest.address.bus = 9;
  leases[0].managed = true;
  const auto xml = replaced(fixture.with, "<tag id='100'/>", "<tag id='200'/>");
  EXPECT_THAT(elementDifferences(xml, leases),
              testing::ElementsAre(
                  "VF 'rail0': the XML has managed='no', the lease records managed='yes'",
                  "VF 'rail0': the XML claims host device 0000:3b:00.2, the lease records "
                  "0000:3b:00.5",
                  "VF 'rail0': its guest address in the XML is 0000:03:00.0, the lease records "
                  "0000:09:00.0",
                  "VF 'rail1': the XML has id='200' in <tag>, the lease records id='100'"));
}

TEST(ElementDifferences, NamesMissingDoubledAndStrayElements) {
  Fixture fixture;
  fixture.leases[1].part = LeasedFunction{};
  fixture.leases[1].entry = "gpu0";
  const auto twice = replaced(fixture.with, "<memballoon model='none'/>",
                              "<hostdev type='pci'><source><address bus='0x3b' function='2'/>"
                              "</source></hostdev>");
  EXPECT_THAT(
      elementDifferences(twice, fixture.leases),
      testing::ElementsAre(
          "VF 'rail0': the XML claims host device 0000:3b:00.2 more than once",
          "PCI function 'gpu0': the XML has no device with alias ua-vfpass-gpu0",
          "controller ua-vfpass-port-gpu0: missing in the XML, or not as the lease records",
          "the XML has a <controller> with alias ua-vfpass-port-rail1, which no lease records",
          "the XML has a <interface> with alias ua-vfpass-rail1, which no lease records"));
}

TEST(RunningDifferences, IgnoresThePlaceOfTheNextStart) {
  Fixture fixture;
  fixture.leases[1].guest.address.bus = 9;
  EXPECT_THAT(runningDifferences(fixture.with, fixture.leases), testing::IsEmpty());
  EXPECT_THAT(runningDifferences(replaced(fixture.with, "<tag id='100'/>", "<tag id='200'/>"),
                                 fixture.leases),
              testing::ElementsAre(
                  "VF 'rail1': the XML has id='200' in <tag>, the lease records id='100'"));
}

TEST(CarriesLeases, DetectsStrayDevicesWithoutLeases) {
  const auto xml = replaced(readCase("q35.xml"), "<memballoon model='none'/>",
                            "<sound model='ac97'><alias name='ua-vfpass-stray'/></sound>");
  EXPECT_FALSE(carriesLeases(xml, {}, fake::sealKey()));
  EXPECT_TRUE(
      carriesLeases(withLeases(xml, {}, builtInTemplates(), fake::sealKey()), {}, fake::sealKey()));
}

}  // namespace
}  // namespace vfpass::domain
