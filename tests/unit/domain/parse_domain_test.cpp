#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

std::string domainWith(const std::string& devices) {
  return "<domain><name>n</name><uuid>11111111-2222-3333-4444-555555555555</uuid><devices>" +
         devices + "</devices></domain>";
}

std::string attached() {
  const auto xml = readCase("q35.xml");
  return withLeases(xml, sampleLeases(xml), builtInTemplates(), fake::sealKey());
}

void expectBadInput(const std::string& xml) {
  try {
    parseDomain(xml);
    FAIL() << "accepted: " << xml.substr(0, 200);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::badInput);
    EXPECT_FALSE(error.remedy().empty());
  }
}

TEST(ParseDomain, ReadsAnUnmanagedDomain) {
  const auto parsed = parseDomain(readCase("q35.xml"));
  EXPECT_EQ(parsed.name, "train0");
  EXPECT_EQ(parsed.uuid, caseUuid());
  EXPECT_FALSE(parsed.managed);
  EXPECT_TRUE(parsed.pciExpress);
  EXPECT_THAT(parsed.leases, testing::IsEmpty());
  EXPECT_THAT(parsed.macAddresses,
              testing::ElementsAre(MacAddress{{0x52, 0x54, 0, 0xaa, 0xbb, 0xcc}}));
  EXPECT_THAT(parsed.claims, testing::ElementsAre(Claim{{0, 0x5e, 0, 0}, "", {0, 0, 3, 0}}));
  EXPECT_THAT(parsed.interfaces, testing::Contains(DomainInterface{
                                     "ua-net0", MacAddress{{0x52, 0x54, 0, 0xaa, 0xbb, 0xcc}},
                                     "virtio", "persistent"}));
  EXPECT_FALSE(parseDomain(readCase("i440fx.xml")).pciExpress);
}

TEST(ParseDomain, ReadsOurDevicesAsClaims) {
  const auto parsed = parseDomain(attached());
  EXPECT_TRUE(parsed.managed);
  EXPECT_THAT(parsed.claims, testing::UnorderedElementsAre(
                                 Claim{{0, 0x5e, 0, 0}, "", {0, 0, 3, 0}},
                                 Claim{{0, 0x3b, 0, 2}, "ua-vfpass-rail0", {0, 3, 0, 0}},
                                 Claim{{0, 0x3b, 0, 3}, "ua-vfpass-rail1", {0, 4, 0, 0}}));
  EXPECT_THAT(parsed.macAddresses, testing::SizeIs(2)) << "of interfaces, not of metadata";
}

TEST(ParseDomain, ReadsNumbersAsLibvirtDoes) {
  const auto parsed = parseDomain(domainWith(
      "<hostdev type='pci'><source><address domain='65536' bus='017' slot='0X1F' function='7'/>"
      "</source></hostdev>"
      "<disk type='nvme'><source type='pci'><address bus='0x01'/></source></disk>"
      "<interface type='hostdev' managed='yes'><source><address type='pci' bus='2'/></source>"
      "<alias name='a'/><address type='unassigned'/></interface>"
      "<interface type='hostdev'><source><address type='usb' bus='1' device='2'/></source>"
      "</interface><hostdev type='usb'><source><address bus='1' device='900'/></source></hostdev>"
      "<hostdev type='mdev'><source><address uuid='x'/></source></hostdev>"));
  EXPECT_THAT(parsed.claims,
              testing::ElementsAre(Claim{{0x10000, 0xf, 0x1f, 7}, "", {}},
                                   Claim{{0, 1, 0, 0}, "", {}}, Claim{{0, 2, 0, 0}, "a", {}}));
}

TEST(ParseDomain, ReportsUnreadableClaimAndKeepsTheOthers) {
  for (const char* address :
       {"", "<address bus='0x100'/>", "<address slot='32'/>", "<address function='8'/>",
        "<address bus='-1'/>", "<address bus=''/>", "<address bus='0x'/>", "<address bus='1 '/>",
        "<address domain='0x100000000'/>", "<address bus='08'/>"}) {
    const auto parsed = parseDomain(domainWith(
        std::string("<hostdev type='pci'><source>") + address +
        "</source></hostdev><hostdev type='pci'><source><address bus='2'/></source></hostdev>"));
    EXPECT_THAT(parsed.claims, testing::ElementsAre(Claim{{0, 2, 0, 0}, "", {}}));
    EXPECT_EQ(parsed.claimProblem, "<hostdev> without a valid host PCI address") << address;
    EXPECT_THROW(requireKnownClaims(parsed), Error);
  }
}

std::string withArguments(const std::string& arguments) {
  std::string xml = domainWith("<controller type='pci' index='0' model='pcie-root'/>");
  xml.insert(xml.find("</domain>"), "<qemu:commandline>" + arguments + "</qemu:commandline>");
  return xml;
}

std::string argument(const std::string& value) { return "<qemu:arg value='" + value + "'/>"; }

std::string device(const std::string& value) { return argument("-device") + argument(value); }

TEST(ParseDomain, ReadsDevicesOfQemusCommandLineAsClaims) {
  const std::string xml = withArguments(
      argument("-name") + argument("vfio-pci,host=0000:01:00.0") +
      device("vfio-pci,host=0000:41:00.0,bus=dn1,x-nv-gpudirect-clique=0") +
      device("host=41:0.1,id=a,,b,driver=vfio-pci") + argument("--device") +
      argument("vfio-pci-nohotplug,sysfsdev=/sys/bus/pci/devices/0001:02:1f.7/") +
      device(
          "{&quot;driver&quot;: &quot;vfio-pci&quot;, &quot;host&quot;: &quot;0000:42:00.0&quot;,"
          " &quot;multifunction&quot;: true}") +
      device("virtio-net-pci,host=0000:43:00.0") +
      device("vfio-pci,sysfsdev=/sys/bus/mdev/devices/4b20d080-1b54-4048-85b3-a6a62d165c01"));
  const auto parsed = parseDomain(xml);
  EXPECT_EQ(doubtAboutArguments(xml), "");
  EXPECT_THAT(parsed.claims, testing::ElementsAre(Claim{{0, 0x41, 0, 0}, "qemu:commandline", {}},
                                                  Claim{{0, 0x41, 0, 1}, "qemu:commandline", {}},
                                                  Claim{{1, 2, 0x1f, 7}, "qemu:commandline", {}},
                                                  Claim{{0, 0x42, 0, 0}, "qemu:commandline", {}}));
  EXPECT_EQ(parsed.claimProblem, "");
}

TEST(ParseDomain, DoubtsArgumentsThatItCannotUnderstand) {
  for (const auto& [arguments, doubt] : std::vector<std::pair<std::string, std::string>>{
           {argument("-readconfig") + argument("/etc/qemu/devices.cfg"), "-readconfig"},
           {device("vfio-pci,id=x"), "a device vfio-pci whose `host`"},
           {device("vfio-pci,host=0000:41:00.8"), "a device vfio-pci whose `host`"},
           {device("vfio-pci,host=zz:00.0"), "a device vfio-pci whose `host`"},
           {device("vfio-pci,host=100:00.0"), "a device vfio-pci whose `host`"},
           {device("vfio-pci,sysfsdev=/sys/class/net/eth5/device"),
            "a device vfio-pci whose `host`"},
           {device("{"), "a -device whose JSON cannot be read"},
           {device("{&quot;a&quot;: [[[[[1]]]]]}"), "a -device whose JSON cannot be read"},
           {repeated(device("vfio-pci,host=0000:41:00.0"), 5000), "more than 4096 devices"},
       }) {
    const std::string xml = withArguments(arguments + argument("-device"));
    const std::string found = doubtAboutArguments(xml);
    EXPECT_TRUE(found.starts_with(doubt)) << arguments << ": " << found;
    EXPECT_NO_THROW(requireKnownClaims(parseDomain(xml)));
  }
}

TEST(ParseDomain, RejectsOtherXml) {
  const std::string uuid = "<uuid>11111111-2222-3333-4444-555555555555</uuid>";
  for (const std::string& xml : {
           std::string(),
           std::string("   "),
           std::string("text"),
           std::string("<domain>"),
           std::string("</domain>"),
           std::string("<domain></domain></domain>"),
           std::string("<domain/><domain/>"),
           std::string("<network><name>n</name>") + uuid + "</network>",
           "<domain>" + uuid + "</domain>",
           "<domain><name/>" + uuid + "</domain>",
           std::string("<domain><name>n</name></domain>"),
           std::string("<domain><name>n</name><uuid>1111</uuid></domain>"),
           std::string("<domain><name>n</nam>") + uuid + "</domain>",
           std::string("<domain><name>n</name a>") + uuid + "</domain>",
           std::string("<domain><!-- <name>n</name>") + uuid + "</domain>",
           std::string("<domain a='><name>n</name>") + uuid + "</domain>",
           std::string("<!DOCTYPE domain [<!ENTITY a 'b'>]><domain><name>n</name>") + uuid +
               "</domain>",
           std::string("<domain><name>n\0</name>", 23) + uuid + "</domain>",
       }) {
    expectBadInput(xml);
  }
}

TEST(ParseDomain, EnforcesItsLimits) {
  expectBadInput(domainWith(std::string((std::size_t{16} << 20U), ' ')));
  std::string deep;
  std::string tail;
  for (int level = 0; level < 1'000'000; ++level) {
    deep += "<a>";
    tail += "</a>";
  }
  expectBadInput(domainWith(deep + tail));
  expectBadInput(domainWith(deep));
}

TEST(ParseDomain, HasNoLimitForNumberOfDevices) {
  constexpr std::size_t count = 45'000;
  const auto parsed = parseDomain(domainWith(repeated(
      "<interface><source/><model/><target/><alias/><mac address='52:54:00:00:00:01'/></interface>",
      count)));
  EXPECT_EQ(parsed.interfaces.size(), count);
  EXPECT_THAT(parsed.macAddresses, testing::SizeIs(1));
}

TEST(LeadingUuid, IsFoundBeforeAnythingThatAUserCanAdd) {
  EXPECT_EQ(leadingUuid(readCase("q35.xml")), caseUuid());
  const std::string start =
      "<domain type='kvm' id='7' xmlns:q='a>b'>\n  <name>&lt;uuid&gt;</name>\n"
      "  <uuid>11111111-2222-3333-4444-555555555555</uuid>\n";
  EXPECT_EQ(leadingUuid(start + "<metadata><cut off"), caseUuid());
  EXPECT_EQ(leadingUuid(start), caseUuid());
}

TEST(LeadingUuid, IsOnlyThatOfTheDomain) {
  const std::string uuid = "<uuid>11111111-2222-3333-4444-555555555555</uuid>";
  EXPECT_EQ(leadingUuid("<domain><name>" + uuid + "</name></domain>"), std::nullopt);
  EXPECT_EQ(leadingUuid("<domain><metadata>" + uuid + "</metadata>" + uuid + "</domain>"),
            std::nullopt);
  EXPECT_EQ(leadingUuid("<domain><!-- " + uuid + " --></domain>"), std::nullopt);
  EXPECT_EQ(leadingUuid("<domain><uuid>x</uuid></domain>"), std::nullopt);
  EXPECT_EQ(leadingUuid(""), std::nullopt);
}

TEST(MayBeManaged, IsFalseForForeignDomains) {
  EXPECT_FALSE(mayBeManaged(readCase("q35.xml")));
  EXPECT_FALSE(mayBeManaged(""));
  EXPECT_TRUE(mayBeManaged(attached()));
}

TEST(MayBeManaged, IsOnlyAHintWhenTheNamespaceIsElsewhere) {
  const auto xml = domainWith(
      "<!-- https://vfpass.org/xmlns/domain/1 -->"
      "<d:domain xmlns:d='https://vfpass.org/xmlns/domain/1'/>");
  EXPECT_TRUE(mayBeManaged(xml));
  EXPECT_FALSE(parseDomain(xml).managed);
}

TEST(MayBeManaged, ParseDomainIgnoresEscapedNamespace) {
  const auto xml = replaced(attached(), "https://vfpass.org", "https&#58;//vfpass.org");
  EXPECT_FALSE(parseDomain(xml).managed);
}

TEST(MayBeManaged, IsTrueForOurDevicesWithoutOurMetadata) {
  const auto xml = replaced(attached(), "https://vfpass.org", "https://example.org");
  EXPECT_TRUE(mayBeManaged(xml));
  EXPECT_FALSE(parseDomain(xml).managed);
  EXPECT_TRUE(hasOurDevices(parseDomain(xml)));
  EXPECT_FALSE(hasOurDevices(parseDomain(readCase("q35.xml"))));
}

struct Damage {
  const char* from;
  const char* to;
};

class DamagedMetadata : public testing::TestWithParam<Damage> {};

TEST_P(DamagedMetadata, IsReportedAndKeepsTheClaims) {
  const auto parsed = parseDomain(replaced(attached(), GetParam().from, GetParam().to));
  EXPECT_TRUE(parsed.managed);
  EXPECT_NE(parsed.metadataProblem, "");
  EXPECT_THAT(parsed.leases, testing::IsEmpty());
  EXPECT_THAT(parsed.claims, testing::SizeIs(3));
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedMetadata,
    testing::Values(
        Damage{" version=\"2\"", " version=\"3\""}, Damage{" version=\"2\"", ""},
        Damage{" uuid=\"1111", " uuid=\""}, Damage{"</vfpass:lease>", "}</vfpass:lease>"},
        Damage{R"(,"vf-name":"rail0")", ""}, Damage{R"("rail0")", R"("")"},
        Damage{R"("rail0")", R"("a b")"}, Damage{R"("rail0")", R"("../x")"},
        Damage{R"("rail0")", R"("rail1")"}, Damage{R"("rail0")", R"("rail0","vf-name":"rail0")"},
        Damage{R"("generation":7)", R"("generation":-7)"},
        Damage{R"("generation":7)", R"("generation":18446744073709551616)"},
        Damage{R"("generation":7)", R"("generation":7,"unknown":0)"},
        Damage{R"("vf-index":0)", R"("vf-index":4294967296)"},
        Damage{R"("vf":"0000:3b:00.2")", R"("vf":"0000:3b:00.9")"},
        Damage{R"("infiniband":false)", R"("infiniband":"no")"}, Damage{R"("managed":false,)", ""},
        Damage{R"(["mac","vlan"])", R"(["mac","wlan"])"},
        Damage{R"("allow":[])", R"("allow":["all"])"}, Damage{R"("allow":[])", R"("allow":{})"},
        Damage{R"("mac":"02:00:00:00:00:00")", R"("mac":"02:00")"},
        Damage{R"("id":100)", R"("id":4095)"}, Damage{R"("qos":0)", R"("qos":8)"},
        Damage{R"("protocol":"802.1Q",)", ""}, Damage{R"("trust":false)", R"("trust":"")"},
        Damage{R"("link-state":"auto")", R"("link-state":"down")"},
        Damage{R"("index":3)", R"("index":256)"}, Damage{R"("address":"0000:00:04.0",)", ""},
        Damage{R"("settings":{)", R"("setting":{)"}, Damage{R"("driver":"mlx5_core",)", ""},
        Damage{R"("driver":"mlx5_core")", R"("driver":"../../../../../../tmp/x")"},
        Damage{R"("driver-override":"")", R"("driver-override":"/tmp/x_vfio-pci")"},
        Damage{"</vfpass:domain>",
               "</vfpass:domain><a:domain "
               "xmlns:a=\"https://vfpass.org/xmlns/domain/1\"/>"}));

class DamagedVersion1 : public testing::TestWithParam<Damage> {};

TEST_P(DamagedVersion1, IsReportedAndKeepsTheClaims) {
  const auto parsed =
      parseDomain(replaced(readCase("version-1.xml"), GetParam().from, GetParam().to));
  EXPECT_TRUE(parsed.managed);
  EXPECT_NE(parsed.metadataProblem, "");
  EXPECT_THAT(parsed.leases, testing::IsEmpty());
  EXPECT_THAT(parsed.claims, testing::SizeIs(4));
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedVersion1,
    testing::Values(
        Damage{" version=\"1\"", " version=\"3\""}, Damage{" version=\"1\"", ""},
        Damage{" uuid=\"1111", " uuid=\""}, Damage{" name=\"rail0\"", ""},
        Damage{" name=\"rail0\"", " name=\"\""}, Damage{" name=\"rail0\"", " name=\"a b\""},
        Damage{" name=\"rail0\"", " name=\"../x\""}, Damage{" name=\"rail0\"", " name=\"rail1\""},
        Damage{" generation=\"7\"", " generation=\"-7\""},
        Damage{" generation=\"7\"", " generation=\"18446744073709551616\""},
        Damage{" vf-index=\"0\"", " vf-index=\"4294967296\""},
        Damage{" vf=\"0000:3b:00.2\"", " vf=\"0000:3b:00.9\""},
        Damage{" infiniband=\"no\"", " infiniband=\"false\""}, Damage{" managed=\"no\"", ""},
        Damage{"\"mac vlan\"", "\"mac  vlan\""}, Damage{"\"mac vlan\"", "\"mac wlan\""},
        Damage{" allow=\"\"", " allow=\"all\""},
        Damage{"mac=\"02:00:00:00:00:00\"", "mac=\"02:00\""},
        Damage{"vlan-id=\"100\"", "vlan-id=\"4095\""}, Damage{"vlan-qos=\"0\"", "vlan-qos=\"8\""},
        Damage{" vlan-protocol=\"802.1Q\"", ""}, Damage{"trust=\"no\"", "trust=\"\""},
        Damage{"link-state=\"auto\"", "link-state=\"down\""},
        Damage{"port-index=\"3\"", "port-index=\"256\""},
        Damage{" port-address=\"0000:00:04.0\"", ""},
        Damage{"<vfpass:settings ", "<vfpass:setting "},
        Damage{"<vfpass:original driver=\"mlx5_core\"", "<vfpass:original "}, Damage{"%25", "%2"},
        Damage{"%25", "%zz"}, Damage{"driver=\"mlx5_core\"", "driver=\"../../../../../../tmp/x\""},
        Damage{"driver-override=\"\"", "driver-override=\"/tmp/x_vfio-pci\""},
        Damage{"</vfpass:domain>",
               "</vfpass:domain><a:domain "
               "xmlns:a=\"https://vfpass.org/xmlns/domain/1\"/>"}));

TEST(ScanElements, FindsTheEndOfEachElement) {
  const std::string xml = "<?x <a> ?><a b='>'><!-- </a> --><c/><![CDATA[</a>]]><d></d ></a>\n";
  const auto spans = scanElements(xml);
  const auto text = [&xml](const ElementSpan& span) {
    return xml.substr(span.begin, span.end - span.begin);
  };
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(text(spans[0]), xml.substr(10, xml.size() - 11));
  EXPECT_EQ(text(spans[1]), "<c/>");
  EXPECT_TRUE(spans[1].selfClosing());
  EXPECT_EQ(text(spans[2]), "<d></d >");
  EXPECT_FALSE(spans[2].selfClosing());
}

TEST(Version1, IsReadWithItsSealAndWrittenAsTheCurrentVersion) {
  const std::string xml = readCase("version-1.xml");
  const ParsedDomain parsed = parseDomain(xml);
  EXPECT_EQ(parsed.metadataProblem, "");
  EXPECT_EQ(sealFault(parsed, fake::sealKey()), "");
  ASSERT_THAT(parsed.leases, testing::SizeIs(3));
  EXPECT_TRUE(carriesLeases(xml, parsed.leases, fake::sealKey()));
  const std::string now = withLeases(xml, parsed.leases, builtInTemplates(), fake::sealKey());
  EXPECT_THAT(now, testing::HasSubstr(" version=\"2\""));
  EXPECT_EQ(parseDomain(now).leases, parsed.leases);
  EXPECT_EQ(sealFault(parseDomain(now), fake::sealKey()), "");
  EXPECT_EQ(withLeases(now, {}, builtInTemplates(), {}), readCase("q35.xml"));
  EXPECT_EQ(withLeases(xml, {}, builtInTemplates(), {}), readCase("q35.xml"));
}

TEST(Version1, HasEveryMember) {
  const auto leases = parseDomain(readCase("version-1.xml")).leases;
  const LeasedVf& first = vfOf(leases.at(0));
  EXPECT_EQ(leases[0].entry, "rail0");
  EXPECT_EQ(first.refused, (std::set{Attribute::rate, Attribute::trust}));
  EXPECT_EQ(first.settings.rate, (Rate{100, 2000}));
  EXPECT_EQ(first.settings.vlan, (Vlan{100, 0, VlanProtocol::dot1q}));
  EXPECT_EQ(leases[0].allow, (std::set{Allowance::sharedIommuGroup, Allowance::trust}));
  ASSERT_THAT(leases[0].edits, testing::SizeIs(2));
  EXPECT_EQ(leases[0].edits[1].elements.at(1), "<emulatorpin cpuset='2'/>");
  EXPECT_EQ(leases[1].pfSerial, "caf\xc3\xa9 \xff\x01%");
  EXPECT_TRUE(vfOf(leases[1]).interfaceForm);
  EXPECT_TRUE(leases[1].guest.port->multifunction);
  EXPECT_EQ(std::get<LeasedFunction>(leases[2].part).vfioDriver, "nvgrace_gpu_vfio_pci");
  ASSERT_THAT(leases[2].guest.controllers, testing::SizeIs(2));
  EXPECT_EQ(leases[2].guest.controllers[0].node, 1U);
  EXPECT_EQ(leases[2].guest.controllers[0].busNumber, 64U);
  EXPECT_FALSE(leases[2].guest.controllers[1].hotplug);
}

TEST(Version1, SealRejectsEveryEditedTerm) {
  for (const auto& [from, to] : std::vector<std::pair<const char*, const char*>>{
           {"vlan-id=\"100\"", "vlan-id=\"101\""},
           {"trust=\"no\"", "trust=\"yes\""},
           {"generation=\"7\"", "generation=\"8\""},
           {"driver=\"mlx5_core\"", "driver=\"other\""},
           {"persistent=\"yes\"", "persistent=\"no\""},
           {"refused=\"rate trust\" ", ""},
           {"vf=\"0000:3b:00.2\"", "vf=\"0000:3b:00.4\""},
           {"bus-number=\"64\"", "bus-number=\"65\""},
           {"4194304&lt;/hard_limit>", "4194305&lt;/hard_limit>"},
           {"port-index=\"3\"", "port-index=\"9\""}}) {
    const auto parsed = parseDomain(replaced(readCase("version-1.xml"), from, to));
    EXPECT_THAT(sealFault(parsed, fake::sealKey()), testing::HasSubstr("wrong seal")) << from;
  }
}

}  // namespace
}  // namespace vfpass::domain
