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
        Edit{"persistent='ua-net0'", "persistent='ua-net1'"},
        Edit{"<memballoon model='none'/>",
             "<sound model='ac97'><alias name='ua-vfpass-stray'/></sound>"},
        Edit{"<memballoon model='none'/>",
             "<hostdev type='pci'><source><address bus='1'/></source>"
             "<alias name='ua-vfpass-rail0'/></hostdev>"}));

TEST(CarriesLeases, DetectsStrayDevicesWithoutLeases) {
  const auto xml = replaced(readCase("q35.xml"), "<memballoon model='none'/>",
                            "<sound model='ac97'><alias name='ua-vfpass-stray'/></sound>");
  EXPECT_FALSE(carriesLeases(xml, {}, fake::sealKey()));
  EXPECT_TRUE(
      carriesLeases(withLeases(xml, {}, builtInTemplates(), fake::sealKey()), {}, fake::sealKey()));
}

}  // namespace
}  // namespace vfpass::domain
