// The proposed settings in a domain's XML: valid, complete after one attach, and removed without a
// trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fake/seal_key.hpp"
#include "support.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::settings {
namespace {

using testing::IsEmpty;

struct Case {
  std::string name;
  std::vector<unsigned> rails;
  std::string extra;
  std::string inCpu;
};

std::string nameOf(const testing::TestParamInfo<Case>& instance) {
  std::string name = instance.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class ProposedXml : public testing::TestWithParam<Case> {
 protected:
  ProposedXml() {
    host.capacity.nodes[0].pages[gib] = host.capacity.nodes[1].pages[gib] = {512, 512};
  }

  [[nodiscard]] std::string bare() const {
    return domainXml(16, 256 * gib, GetParam().extra, GetParam().inCpu);
  }

  [[nodiscard]] std::vector<GuestDevice> devices() const {
    auto all = railDevices(GetParam().rails);
    for (std::size_t i = 0; i < all.size(); i += 2) {
      all[i].clique = static_cast<unsigned>(i / 2);
    }
    return all;
  }

  [[nodiscard]] Lease lease(const std::string& xml) const {
    Lease lease;
    lease.part = LeasedFunction{};
    lease.domain = *parseUuid("11111111-2222-3333-4444-555555555555");
    lease.domainName = "train0";
    lease.entry = "gpu0";
    lease.device = lease.pf = *parsePciAddress("0000:10:00.0");
    lease.guest = domain::placeDevices(bare(), 1).front();
    lease.edits = editsOf(proposalFor(host, xml, devices()));
    return lease;
  }

  static std::string attached(const std::string& xml, const std::vector<Lease>& leases) {
    return domain::withLeases(xml, leases, domain::builtInTemplates(), fake::sealKey());
  }

  TestHost host;
};

TEST_P(ProposedXml, IsValidForLibvirt) {
  const auto directory = std::filesystem::path(VFPASS_BINARY_DIR) / "settings";
  std::filesystem::create_directories(directory);
  const auto file = directory / (GetParam().name + ".xml");
  std::ofstream(file) << attached(bare(), {lease(bare())});
  const std::string command =
      "xmllint --noout --relaxng /usr/share/libvirt/schemas/domain.rng " + file.string();
  EXPECT_EQ(std::system((command + " 2>" + file.string() + ".log").c_str()), 0)  // NOLINT
      << std::ifstream(file.string() + ".log").rdbuf();
}

TEST_P(ProposedXml, IsRemovedWithoutTrace) {
  const auto with = attached(bare(), {lease(bare())});
  EXPECT_NE(with, bare());
  EXPECT_EQ(attached(with, {}), bare());
}

TEST_P(ProposedXml, IsUnchangedBySecondAttach) {
  const Lease first = lease(bare());
  const auto with = attached(bare(), {first});
  EXPECT_TRUE(domain::carriesLeases(with, {first}, fake::sealKey()));
  EXPECT_EQ(lease(with).edits, first.edits)
      << "settings of vfpass are not taken for the administrator's";
  EXPECT_EQ(attached(with, {lease(with)}), with);
}

TEST_P(ProposedXml, IsNotProposedAgainWhenSetByAdministrator) {
  const auto own = domain::withEdits(bare(), lease(bare()).edits);
  const auto again = proposalFor(host, own, devices());
  EXPECT_THAT(editsOf(again), IsEmpty());
}

TEST_P(ProposedXml, KeepsElementsChangedByAdministrator) {
  const Lease made = lease(bare());
  auto with = attached(bare(), {made});
  // A detach removes all but the element that was changed.
  const std::string from = "mode='strict' nodeset=";
  const auto metadata = with.find("</metadata>");
  with.replace(with.find(from, metadata), from.size(), "mode='preferred' nodeset=");
  EXPECT_FALSE(domain::carriesLeases(with, {made}, fake::sealKey()));
  const auto detached = attached(with, {});
  EXPECT_NE(detached.find("mode='preferred'"), std::string::npos);
  EXPECT_EQ(detached.find("<vcpupin"), std::string::npos);
  EXPECT_EQ(detached.find("x-nv-gpudirect-clique"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Domains, ProposedXml,
    testing::Values(Case{"one-rail", {0}, "", ""},
                    Case{"eight-rails", {0, 1, 2, 3, 4, 5, 6, 7}, "", ""},
                    Case{"with-neighbours",
                         {0, 4},
                         "  <memtune>\n    <soft_limit unit='KiB'>1048576</soft_limit>\n"
                         "  </memtune>\n  <cputune>\n    <shares>512</shares>\n  </cputune>\n"
                         "  <memoryBacking/>\n",
                         "    <topology sockets='2' dies='1' cores='8' threads='1'/>\n"}),
    nameOf);

// libvirt writes its own order, quotes and line breaks.
TEST(SettingsXml, RecognizesElementsFormattedByLibvirt) {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = *parseUuid("11111111-2222-3333-4444-555555555555");
  lease.domainName = "train0";
  lease.entry = "gpu0";
  lease.device = lease.pf = *parsePciAddress("0000:10:00.0");
  lease.guest = domain::placeDevices(domainXml(2, 16 * gib), 1).front();
  lease.edits = {{"hugepages",
                  EditPlace::memoryBacking,
                  {"<hugepages><page size='1048576' unit='KiB'/></hugepages>"}}};
  auto xml = domain::withLeases(domainXml(2, 16 * gib), {lease}, domain::builtInTemplates(),
                                fake::sealKey());
  const std::string mine = "<page size='1048576' unit='KiB'/>";
  xml.replace(xml.find(mine), mine.size(), "\n   <page  unit=\"KiB\" size=\"1048576\" />\n");
  EXPECT_TRUE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
  EXPECT_EQ(domain::withLeases(xml, {}, domain::builtInTemplates(), fake::sealKey()),
            domainXml(2, 16 * gib));
}

namespace {

Lease leaseWith(const DomainEdit& edit) {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = *parseUuid("11111111-2222-3333-4444-555555555555");
  lease.domainName = "train0";
  lease.entry = "gpu0";
  lease.device = lease.pf = *parsePciAddress("0000:10:00.0");
  lease.guest = domain::placeDevices(domainXml(2, 16 * gib), 1).front();
  lease.edits = {edit};
  return lease;
}

std::string withLease(const std::string& xml, const std::vector<Lease>& leases) {
  return domain::withLeases(xml, leases, domain::builtInTemplates(), fake::sealKey());
}

}  // namespace

TEST(SettingsXml, ElementOfTheDomainItselfIsAddedAndRemovedByteForByte) {
  const std::string element = "<iommufd enabled='yes'/>";
  const Lease lease = leaseWith({"iommu-backend", EditPlace::domain, {element}});
  const std::string bare = domainXml(2, 16 * gib);
  std::string xml = withLease(bare, {lease});
  EXPECT_TRUE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
  EXPECT_EQ(domain::configuredBackend(xml), VfioBackend::iommufd);
  EXPECT_EQ(domain::readDomainFacts(xml).iommufd, std::nullopt) << "not the administrator's";
  EXPECT_EQ(withLease(xml, {lease}), xml);
  EXPECT_EQ(withLease(xml, {}), bare);
  // libvirt formats it after <vcpu> (tests/qemuxmlconfdata/iommufd-q35-fd.x86_64-latest.xml).
  const std::string line = "\n  " + element;
  ASSERT_NE(xml.find(line), std::string::npos) << xml;
  xml.erase(xml.find(line), line.size());
  EXPECT_FALSE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
  xml.insert(xml.find("</vcpu>") + 7, line);
  EXPECT_TRUE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
  EXPECT_EQ(withLease(xml, {}), bare);
}

TEST(SettingsXml, ChangedElementOfTheDomainIsKept) {
  const std::string element = "<iommufd enabled='yes'/>";
  const Lease lease = leaseWith({"iommu-backend", EditPlace::domain, {element}});
  std::string xml = withLease(domainXml(2, 16 * gib), {lease});
  xml.replace(xml.find(element), element.size(), "<iommufd enabled='yes' fdgroup='mine'/>");
  EXPECT_EQ(domain::readDomainFacts(xml).iommufd, true) << "now the administrator's";
  EXPECT_NE(withLease(xml, {}).find("fdgroup='mine'"), std::string::npos);
}

namespace {

constexpr const char* linkSpeeds =
    "<qemu:device alias='ua-vfpass-bus-1'><qemu:frontend><qemu:property name='x-speed' "
    "type='string' value='32'/><qemu:property name='x-width' type='string' "
    "value='16'/></qemu:frontend></qemu:device>";

constexpr const char* linkSpeedsLines =
    "    <qemu:device alias='ua-vfpass-bus-1'>\n"
    "      <qemu:frontend>\n"
    "        <qemu:property name='x-speed' type='string' value='32'/>\n"
    "        <qemu:property name='x-width' type='string' value='16'/>\n"
    "      </qemu:frontend>\n"
    "    </qemu:device>\n";

}  // namespace

TEST(SettingsXml, LinkSpeedsAreOverridesThatDetachRemoves) {
  const Lease lease = leaseWith({"link-speeds", EditPlace::qemuOverride, {linkSpeeds}});
  const std::string bare = domainXml(2, 16 * gib);
  const std::string xml = withLease(bare, {lease});
  EXPECT_TRUE(
      xml.ends_with("  </devices>\n"
                    "  <qemu:override xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n" +
                    std::string(linkSpeedsLines) + "  </qemu:override>\n</domain>\n"))
      << xml;
  EXPECT_TRUE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
  EXPECT_THAT(domain::readDomainFacts(xml).linkAliases, IsEmpty()) << "not the administrator's";
  EXPECT_EQ(withLease(xml, {lease}), xml);
  EXPECT_EQ(withLease(xml, {}), bare);
}

TEST(SettingsXml, LinkSpeedsLeaveOverridesAndArgumentsOfTheDomain) {
  const std::string own =
      "    <qemu:device alias='ua-mine'>\n      <qemu:frontend>\n"
      "        <qemu:property name='x-speed' type='string' value='8'/>\n"
      "      </qemu:frontend>\n    </qemu:device>\n";
  std::string bare = domainXml(2, 16 * gib);
  bare.insert(bare.find("</domain>"),
              "  <qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
              "    <qemu:arg value='-set'/>\n"
              "    <qemu:arg value='device.ua-other.x-width=4'/>\n"
              "  </qemu:commandline>\n"
              "  <qemu:override xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n" +
                  own + "  </qemu:override>\n");
  const Lease lease = leaseWith({"link-speeds", EditPlace::qemuOverride, {linkSpeeds}});
  const std::string xml = withLease(bare, {lease});
  EXPECT_NE(xml.find(own + linkSpeedsLines + "  </qemu:override>"), std::string::npos) << xml;
  EXPECT_EQ(domain::readDomainFacts(xml).linkAliases,
            (std::set<std::string>{"ua-mine", "ua-other"}));
  EXPECT_TRUE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
  EXPECT_EQ(withLease(xml, {}), bare);
}

// Anybody who can edit the domain can write a record that names what is not ours.
TEST(SettingsXml, RecordRemovesNoOtherElementOfTheDomain) {
  const std::string memtune =
      "  <memtune>\n    <hard_limit unit='KiB'>1</hard_limit>\n  </memtune>\n";
  const std::string bare = domainXml(2, 16 * gib, memtune);
  const Lease lease = leaseWith({"iommu-backend",
                                 EditPlace::domain,
                                 {"<memtune><hard_limit unit='KiB'>1</hard_limit></memtune>"}});
  const std::string xml = withLease(bare, {lease});
  const std::string once = withLease(xml, {});
  EXPECT_NE(once.find("<hard_limit unit='KiB'>1</hard_limit>"), std::string::npos);
  EXPECT_FALSE(domain::carriesLeases(xml, {lease}, fake::sealKey()));
}

// Anybody who can edit the domain can write metadata of vfpass.
TEST(SettingsXml, HandlesMetadataThatNameElementTwice) {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = *parseUuid("11111111-2222-3333-4444-555555555555");
  lease.domainName = "train0";
  lease.entry = "gpu0";
  lease.device = lease.pf = *parsePciAddress("0000:10:00.0");
  lease.guest = domain::placeDevices(domainXml(2, 16 * gib), 1).front();
  const DomainEdit edit{
      "hard-limit", EditPlace::memtune, {"<hard_limit unit='KiB'>1</hard_limit>"}};
  lease.edits = {edit};
  auto xml = domain::withLeases(domainXml(2, 16 * gib), {lease}, domain::builtInTemplates(),
                                fake::sealKey());
  const auto begin = xml.find(R"({"elements":)");
  const std::string setting = xml.substr(begin, xml.find('}', begin) + 1 - begin);
  xml.insert(begin, setting + ",");
  EXPECT_EQ(domain::withLeases(xml, {}, domain::builtInTemplates(), fake::sealKey()),
            domainXml(2, 16 * gib));
}

TEST(SettingsXml, RefusesMetadataWithInvalidElement) {
  const std::string sound = "&lt;hard_limit unit='KiB'&gt;1&lt;/hard_limit&gt;";
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = *parseUuid("11111111-2222-3333-4444-555555555555");
  lease.domainName = "train0";
  lease.entry = "gpu0";
  lease.device = lease.pf = *parsePciAddress("0000:10:00.0");
  lease.guest = domain::placeDevices(domainXml(2, 16 * gib), 1).front();
  lease.edits = {{"hard-limit", EditPlace::memtune, {"<hard_limit unit='KiB'>1</hard_limit>"}}};
  const auto with = domain::withLeases(domainXml(2, 16 * gib), {lease}, domain::builtInTemplates(),
                                       fake::sealKey());
  EXPECT_EQ(domain::parseDomain(with).leases.front().edits, lease.edits);
  for (const std::string bad :
       {"", "text", "&lt;a&gt;", "&lt;a/&gt;&lt;b/&gt;", "&lt;!DOCTYPE a&gt;&lt;a/&gt;"}) {
    auto xml = with;
    ASSERT_NE(xml.find(sound), std::string::npos) << xml;
    xml.replace(xml.find(sound), sound.size(), bad);
    EXPECT_FALSE(domain::parseDomain(xml).metadataProblem.empty()) << bad;
  }
}

}  // namespace
}  // namespace vfpass::settings
