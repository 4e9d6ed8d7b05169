// A device whose element is the domain's own: taken over in place, left in place.
#include "vfpass/domain/domain_xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "fake/seal_key.hpp"
#include "support.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::domain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Templates& skeletons() { return builtInTemplates(); }

// For the <hostdev> of q35.xml.
Lease adoptedLease(const std::string& xml) {
  const auto elements = hostElements(xml);
  Lease lease;
  lease.domain = caseUuid();
  lease.domainName = "train0";
  lease.entry = "rail0";
  lease.device = elements.at(0).device;
  lease.pf = {0, 0x5e, 0, 1};
  lease.managed = elements.at(0).managed;
  lease.guest.address = *elements.at(0).guestAddress;
  lease.adoptedElement = elements.at(0).text;
  return lease;
}

std::string withAdopted(const std::string& xml) {
  return withLeases(xml, {adoptedLease(xml)}, skeletons(), fake::sealKey());
}

TEST(HostElements, AreThoseOfOthersByteForByte) {
  const auto xml = readCase("q35.xml");
  const auto elements = hostElements(withLeases(xml, sampleLeases(xml), skeletons(), {}));
  ASSERT_EQ(elements.size(), 1U);
  EXPECT_TRUE(elements[0].managed);
  EXPECT_FALSE(elements[0].interface);
  EXPECT_EQ(toString(*elements[0].guestAddress), "0000:00:03.0");
  EXPECT_NE(xml.find(elements[0].text), std::string::npos);
  EXPECT_TRUE(elements[0].text.starts_with("<hostdev mode="));
  EXPECT_TRUE(elements[0].text.ends_with("</hostdev>"));
}

TEST(HostElements, HaveMacAndVlanOfAnInterface) {
  const auto xml = replaced(readCase("q35.xml"), "<memballoon model='none'/>",
                            "<interface type='hostdev' managed='yes'>"
                            "<mac address='52:54:00:00:00:07'/>"
                            "<source><address type='pci' domain='0' bus='0x5e' slot='0x01' "
                            "function='0x2'/></source><vlan><tag id='42'/></vlan>"
                            "<teaming type='transient' persistent='ua-net0'/></interface>");
  const auto element = hostElements(xml).at(1);
  EXPECT_TRUE(element.interface);
  EXPECT_EQ(toString(*element.mac), "52:54:00:00:00:07");
  EXPECT_EQ(element.vlan, 42);
  EXPECT_EQ(element.partner, "ua-net0");
  EXPECT_FALSE(element.guestAddress);
}

TEST(Adopted, ElementStaysAndOnlyMetadataIsAdded) {
  const auto xml = readCase("q35.xml");
  const auto with = withAdopted(xml);
  EXPECT_TRUE(carriesLeases(with, {adoptedLease(xml)}, fake::sealKey()));
  EXPECT_EQ(withLeases(with, {}, skeletons(), fake::sealKey()), xml);
  EXPECT_EQ(with.find(aliasPrefix), std::string::npos);
  const auto metadata = with.find("<metadata>");
  const auto end = with.find("</metadata>") + std::string("</metadata>").size();
  EXPECT_EQ(with.substr(0, with.rfind('\n', metadata)) + with.substr(end), xml);
}

TEST(Adopted, LeaseIsReadBackWithItsElement) {
  const auto xml = readCase("q35.xml");
  const auto parsed = parseDomain(withAdopted(xml));
  EXPECT_THAT(parsed.leases, ElementsAre(adoptedLease(xml)));
  EXPECT_TRUE(isSealed(parsed, fake::sealKey()));
}

// As libvirt writes it for the hook and for a running domain.
TEST(Adopted, ToleratesWhatLibvirtAddsAtTheStart) {
  const auto xml = readCase("q35.xml");
  const auto live =
      replaced(withAdopted(xml), "<hostdev mode='subsystem' type='pci' managed='yes'>",
               "<hostdev mode='subsystem' type='pci' managed='yes'>\n"
               "      <driver name='vfio'/>\n      <alias name='hostdev0'/>");
  EXPECT_THAT(elementDifferences(live, {adoptedLease(xml)}), IsEmpty());
  EXPECT_THAT(entriesWithDevice(live, {adoptedLease(xml)}), ElementsAre("rail0"));
  EXPECT_EQ(aliasOfDevice(live, adoptedLease(xml)), "hostdev0");
}

TEST(Adopted, ChangesOfOthersAreFoundAndTakenBackByAttach) {
  const auto xml = readCase("q35.xml");
  const auto with = withAdopted(xml);
  // The metadata has the same text, with another `<`.
  const std::string start = "<hostdev mode='subsystem' type='pci' managed=";
  const auto changed = replaced(with, start + "'yes'", start + "'no'");
  EXPECT_THAT(elementDifferences(changed, {adoptedLease(xml)}),
              ElementsAre(HasSubstr("managed='no', the lease records managed='yes'")));
  EXPECT_EQ(withLeases(changed, {adoptedLease(xml)}, skeletons(), fake::sealKey()), with);
  // detach leaves what somebody has changed
  EXPECT_EQ(withLeases(changed, {}, skeletons(), fake::sealKey()),
            replaced(xml, start + "'yes'", start + "'no'"));
}

TEST(Adopted, MissingAndRepeatedElementsAreDifferences) {
  const auto xml = readCase("q35.xml");
  const Lease lease = adoptedLease(xml);
  EXPECT_THAT(elementDifferences(replaced(xml, lease.adoptedElement, ""), {lease}),
              ElementsAre(HasSubstr("has no element for host device 0000:5e:00.0")));
  EXPECT_THAT(elementDifferences(
                  replaced(xml, lease.adoptedElement, lease.adoptedElement + lease.adoptedElement),
                  {lease}),
              ElementsAre(HasSubstr("more than once")));
}

TEST(Adopted, HostileElementInMetadataIsRefused) {
  const auto xml = readCase("q35.xml");
  for (const std::string text : {"<hostdev>", "<a/><b/>", "no element", "<!DOCTYPE a><a/>"}) {
    Lease lease = adoptedLease(xml);
    lease.adoptedElement = text;
    const auto metadata = replaced(metadataXml({lease}, fake::sealKey()), "<domain ",
                                   "<domain xmlns='" + std::string(metadataNamespace) + "' ");
    const auto parsed =
        parseDomain(replaced(xml, "</uuid>", "</uuid><metadata>" + metadata + "</metadata>"));
    EXPECT_THAT(parsed.metadataProblem, HasSubstr("not one XML element")) << text;
  }
}

TEST(Adopted, DeviceHasItsEntrysNameInTheGuest) {
  const auto machine = readGuestMachine(withAdopted(readCase("q35.xml")));
  ASSERT_EQ(machine.passed.size(), 1U);
  EXPECT_EQ(machine.passed[0].name, "rail0");
  EXPECT_EQ(readGuestMachine(readCase("q35.xml")).passed[0].name, "");
}

TEST(ManagingTool, IsNotSeenInOurMetadata) {
  const auto xml = readCase("q35.xml");
  EXPECT_EQ(managingTool(xml).name, "");
  EXPECT_EQ(managingTool(withAdopted(xml)).name, "");
}

class KeptDevicesOf : public testing::TestWithParam<const char*> {};

TEST_P(KeptDevicesOf, ArePlainElementsAtTheirPlaces) {
  const auto xml = readCase(GetParam());
  const auto leases = sampleLeases(xml);
  const auto with = withLeases(xml, leases, skeletons(), fake::sealKey());
  const auto kept = withDevicesKept(with, leases);
  EXPECT_TRUE(carriesLeases(kept, {}, fake::sealKey()));
  EXPECT_EQ(mayBeManaged(kept), mayBeManaged(xml));
  EXPECT_EQ(parseDomain(kept).claims.size(), parseDomain(with).claims.size());
  for (const HostElement& element : hostElements(kept)) {
    const bool leased = std::ranges::any_of(
        leases, [&](const Lease& lease) { return lease.device == element.device; });
    EXPECT_TRUE(element.managed || !leased) << element.text;
  }
  // The inverse, after which detach restores the XML from before.
  const auto back = withLeases(kept, leases, skeletons(), fake::sealKey());
  EXPECT_TRUE(carriesLeases(back, leases, fake::sealKey()));
  EXPECT_EQ(parseDomain(withLeases(back, {}, skeletons(), fake::sealKey())).claims,
            parseDomain(xml).claims);
}

INSTANTIATE_TEST_SUITE_P(Cases, KeptDevicesOf,
                         testing::Values("q35.xml", "foreign-metadata.xml", "i440fx.xml",
                                         "one-line.xml", "odd-formatting.xml",
                                         "libvirt-before.xml"));

TEST(KeptDevices, LeaveAnAdoptedElementAsItIs) {
  const auto xml = readCase("q35.xml");
  EXPECT_EQ(withDevicesKept(withAdopted(xml), {adoptedLease(xml)}), xml);
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// A detach that left the devices is rolled back: domain settings stayed in the XML.
TEST(KeptDevices, SettingsOfAnAdoptedElementAreNotAddedAgain) {
  const auto xml = readCase("q35.xml");
  Lease lease = adoptedLease(xml);
  lease.edits = {{"memory-locked", EditPlace::memoryBacking, {"<locked/>"}}};
  const auto with = withLeases(xml, {lease}, skeletons(), fake::sealKey());
  const auto kept = withDevicesKept(with, {lease});
  const auto back = withLeases(kept, {lease}, skeletons(), fake::sealKey());
  EXPECT_EQ(occurrences(back, "<locked/>"), occurrences(with, "<locked/>"));
  EXPECT_TRUE(carriesLeases(back, {lease}, fake::sealKey()));
}

// An element that an earlier detach left, and that a mapping has taken over since.
TEST(KeptDevices, AliasOfAnAdoptedElementStaysInTheInverse) {
  const auto xml = replaced(readCase("q35.xml"), adoptedLease(readCase("q35.xml")).adoptedElement,
                            "<hostdev mode='subsystem' type='pci' managed='yes'>"
                            "<source><address domain='0x0000' bus='0x5e' slot='0x00' "
                            "function='0x0'/></source><alias name='ua-kept-rail0'/>"
                            "<address type='pci' domain='0x0000' bus='0x00' slot='0x03' "
                            "function='0x0'/></hostdev>");
  std::vector<Lease> leases = sampleLeases(xml);
  std::erase_if(leases, [](const Lease& lease) { return lease.entry == "rail0"; });
  ASSERT_FALSE(leases.empty());
  leases.push_back(adoptedLease(xml));
  const auto with = withLeases(xml, leases, skeletons(), fake::sealKey());
  const auto back = withLeases(withDevicesKept(with, leases), leases, skeletons(), fake::sealKey());
  EXPECT_TRUE(carriesLeases(back, leases, fake::sealKey()));
}

// libvirt cannot rename a device of a running domain, which therefore keeps our alias.
class DeviceLeftToARunningDomain : public testing::Test {
 protected:
  Lease takenOver() {
    Lease lease = leases.front();
    for (const HostElement& element : hostElements(withDevicesKept(live, leases))) {
      if (element.device == lease.device) {
        lease.adoptedElement = element.text;
        lease.managed = element.managed;
        lease.guest = {*element.guestAddress, std::nullopt, {}};
      }
    }
    return lease;
  }

  std::string xml = readCase("q35.xml");
  std::vector<Lease> leases = sampleLeases(xml);
  std::string live = withLeases(xml, leases, skeletons(), fake::sealKey());
};

TEST_F(DeviceLeftToARunningDomain, CanBeTakenOverAgain) {
  const auto devices = [](const std::vector<HostElement>& elements) {
    std::set<PciAddress> found;
    std::ranges::transform(elements, std::inserter(found, found.end()), &HostElement::device);
    return found;
  };
  const PciAddress left = leases.front().device;
  EXPECT_FALSE(devices(hostElements(live)).contains(left));
  EXPECT_FALSE(devices(runningHostElements(live, leases)).contains(left)) << "it is leased";
  EXPECT_TRUE(devices(runningHostElements(live, {})).contains(left));
}

TEST_F(DeviceLeftToARunningDomain, IsTheDeviceOfTheNewLease) {
  Lease lease = takenOver();
  ASSERT_TRUE(isAdopted(lease));
  EXPECT_TRUE(lease.managed);
  EXPECT_NE(lease.adoptedElement.find("ua-kept-rail0"), std::string::npos);
  EXPECT_THAT(runningDifferences(live, {lease}), IsEmpty());
  lease.entry = "vf0";
  EXPECT_THAT(runningDifferences(live, {lease}), IsEmpty());
  EXPECT_TRUE(entriesWithDevice(live, {lease}).contains("vf0"));
  EXPECT_EQ(aliasOfDevice(live, lease), "ua-vfpass-rail0");
  EXPECT_THAT(elementDifferences(live, {lease}), testing::Contains(HasSubstr("has no element")))
      << "in the persistent configuration it has another alias";
  EXPECT_THAT(runningDifferences(replaced(live, "<alias name='ua-vfpass-rail0'/>",
                                          "<alias name='ua-vfpass-rail0'/><rom file='/x'/>"),
                                 {lease}),
              testing::SizeIs(1));
}

}  // namespace
}  // namespace vfpass::domain
