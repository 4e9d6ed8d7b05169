#include "operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "fake/temporary_folder.hpp"
#include "supervisor.hpp"
#include "vfpass/error.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::hook {
namespace {

using testing::HasSubstr;

// The XML of a domain with a VF that is teamed, or migrates by VFIO, as another host or an earlier
// attach has written it, and this host's database.
class Arriving {
 public:
  explicit Arriving(bool migrates = false, bool interfaceForm = false) {
    std::ofstream(places.sealKey.machineId) << "0123456789abcdef0123456789abcdef\n";
    key = state::makeSealKey(places.sealKey);
    bare = "<domain type='kvm'><name>train0</name><uuid>" + toString(uuid) +
           "</uuid><os><type machine='q35'>hvm</type></os><devices>"
           "<controller type='pci' index='0' model='pcie-root'/></devices></domain>";
    lease.domain = uuid;
    lease.domainName = "train0";
    lease.entry = "rail0";
    lease.pf = *parsePciAddress("0000:3b:00.0");
    lease.device = *parsePciAddress("0000:3b:00.2");
    lease.guest = domain::placeDevices(bare, 1).front();
    lease.generation = 3;
    vfOf(lease).settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    vfOf(lease).interfaceForm = interfaceForm;
    if (migrates) {
      vfOf(lease).migrationDriver = "mlx5_vfio_pci";
    } else {
      vfOf(lease).teamingWith = "net0";
    }
    there = lease;
    xml = domain::withLeases(bare, {lease}, domain::builtInTemplates(), key);
    lease.device = *parsePciAddress("0000:81:00.5");
    lease.pf = *parsePciAddress("0000:81:00.0");
    lease.generation = 1;
    expected = domain::withLeases(bare, {lease}, domain::builtInTemplates(), key);
  }

  void recordLease() const {
    state::Database(places.stateDirectory, state::Database::Open::createIfMissing,
                    std::chrono::seconds(2))
        .recordLease(lease);
  }
  [[nodiscard]] CalledDomain parsed() const { return {domain::parseDomain(xml), xml}; }

 private:
  fake::TemporaryFolder temporary_;

 public:
  Uuid uuid = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  SealKey key;
  std::string bare;      ///< without VF
  Lease there;           ///< in the XML as it arrives
  Lease lease;           ///< on this host
  std::string xml;       ///< as it arrives
  std::string expected;  ///< as attach writes it on this host
  Places places{temporary_.path() / "state",
                temporary_.path() / "run",
                std::chrono::steady_clock::now() + std::chrono::minutes(1),
                {temporary_.path() / "etc", temporary_.path() / "machine-id"}};
};

// What the call throws, or the start does that follows it.
std::string refusalOf(auto handler, const Arriving& host) {
  try {
    const std::string xml = handler(host.parsed(), host.places).xml;
    prepare({domain::parseDomain(xml), xml}, host.places);
  } catch (const Error& error) {
    return error.what() + std::string("; ") + error.remedy();
  }
  return "";
}

TEST(ArrivalOperations, WriteTheLeasesOfThisHostIntoTheXml) {
  for (const bool migrates : {false, true}) {
    const Arriving host(migrates);
    host.recordLease();
    EXPECT_EQ(
        host.expected.find("<driver name='vfio' model='mlx5_vfio_pci'/>") != std::string::npos,
        migrates);
    for (const auto handler : {&receive, &restoreSaved}) {
      const auto answer = handler(host.parsed(), host.places);
      EXPECT_EQ(answer.xml, host.expected);
      EXPECT_EQ(answer.leases.size(), 1U);
    }
  }
}

std::string metadataOf(const std::string& xml) {
  const auto begin = xml.find("<metadata>");
  return xml.substr(begin, xml.find("</metadata>") - begin);
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const auto at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old << " in " << text;
  return at == std::string::npos ? text : text.replace(at, old.size(), now);
}

void insertBefore(const std::string& mark, const std::string& added, std::string& xml) {
  xml = replaced(xml, mark, added + mark);
}

// libvirt compares everything else with the guest that runs, the devices by their order.
void expectOnlyHostTermsChange(const Arriving& host) {
  host.recordLease();
  for (const auto handler : {&receive, &restoreSaved}) {
    const std::string xml = handler(host.parsed(), host.places).xml;
    EXPECT_EQ(replaced(xml, metadataOf(xml), metadataOf(host.xml)),
              replaced(host.xml, "bus='0x3b' slot='0x00' function='0x2'",
                       "bus='0x81' slot='0x00' function='0x5'"));
    EXPECT_EQ(domain::parseDomain(xml).leases, domain::parseDomain(host.expected).leases);
    EXPECT_TRUE(domain::isSealed(domain::parseDomain(xml), host.key));
    EXPECT_THAT(domain::elementDifferences(xml, {host.lease}), testing::IsEmpty());
  }
}

TEST(ArrivalOperations, KeepTheOrderOfInterfaces) {
  Arriving host(false, true);
  insertBefore("<controller", "<interface type='user'><alias name='ua-net0'/></interface>",
               host.xml);
  insertBefore("</devices>", "<interface type='user'><alias name='ua-net1'/></interface>",
               host.xml);
  expectOnlyHostTermsChange(host);
}

TEST(ArrivalOperations, KeepTheOrderOfHostDevices) {
  Arriving host;
  insertBefore("</devices>", "<hostdev mode='subsystem' type='usb' managed='yes'/>", host.xml);
  expectOnlyHostTermsChange(host);
}

TEST(ArrivalOperations, KeepTheOrderOfVfsThatAttachHasPluggedLater) {
  Arriving host;
  Lease second = host.there;
  second.entry = "alpha0";
  second.device.function = 3;
  second.guest = domain::placeDevices(host.bare, 2).back();
  const auto with = [&](const std::vector<Lease>& leases) {
    return domain::withLeases(host.bare, leases, domain::builtInTemplates(), host.key);
  };
  host.xml = with({host.there, second});
  host.xml = replaced(host.xml, metadataOf(host.xml), metadataOf(with({second, host.there})));
  host.recordLease();
  state::Database(host.places.stateDirectory, state::Database::Open::createIfMissing,
                  std::chrono::seconds(2))
      .recordLease(second);
  const std::string xml = receive(host.parsed(), host.places).xml;
  EXPECT_LT(xml.find("'ua-vfpass-rail0'"), xml.find("'ua-vfpass-alpha0'"));
  EXPECT_LT(metadataOf(xml).find("alpha0"), metadataOf(xml).find("rail0"));
}

TEST(ArrivalOperations, KeepWhatTheAdministratorHasAddedToAnElement) {
  Arriving host;
  insertBefore("\n      <alias name='ua-vfpass-rail0'/>",
               "\n      <boot order='1'/>\n      <rom bar='off'/>\n      <acpi index='7'/>",
               host.xml);
  expectOnlyHostTermsChange(host);
}

TEST(ArrivalOperations, SetTheVlanOfAnInterface) {
  Arriving host(false, true);
  vfOf(host.lease).settings.vlan = Vlan{12, 0, VlanProtocol::dot1q};
  host.recordLease();
  const std::string xml = receive(host.parsed(), host.places).xml;
  EXPECT_THAT(xml, HasSubstr("<tag id='12'/>"));
  EXPECT_TRUE(domain::carriesLeases(xml, {host.lease}, host.key));
}

// Recorded by an attach to the running guest.
TEST(ArrivalOperations, AddNoSettingOfTheNextStartToAGuest) {
  Arriving host;
  const DomainEdit edit{"guest-numa", EditPlace::domain, {"<iommufd enabled='yes'/>"}};
  host.there.edits = host.lease.edits = {edit};
  const auto with = [&](const Lease& lease) {
    return domain::withLeases(host.bare, {lease}, domain::builtInTemplates(), host.key);
  };
  host.xml = replaced(host.xml, metadataOf(host.xml), metadataOf(with(host.there)));
  host.expected = with(host.lease);
  expectOnlyHostTermsChange(host);
}

DomainEdit vcpuPlacement(const std::string& cpus) {
  return {"vcpu-placement", EditPlace::cputune, {"<vcpupin vcpu='0' cpuset='" + cpus + "'/>"}};
}

TEST(ArrivalOperations, ReplaceTheCpusOfTheOtherHost) {
  Arriving host;
  host.there.edits = {vcpuPlacement("0-3")};
  host.lease.edits = {vcpuPlacement("8-11")};
  const std::string lacking = host.xml;
  host.xml = domain::withLeases(host.bare, {host.there}, domain::builtInTemplates(), host.key);
  host.recordLease();
  const std::string xml = receive(host.parsed(), host.places).xml;
  EXPECT_TRUE(domain::carriesLeases(xml, {host.lease}, host.key));
  EXPECT_EQ(domain::withLeases(xml, {}, domain::builtInTemplates(), {}), host.bare);
  host.xml = replaced(lacking, metadataOf(lacking), metadataOf(host.xml));
  EXPECT_THAT(receive(host.parsed(), host.places).xml, testing::Not(HasSubstr("<cputune>")))
      << "recorded for the next start";
}

TEST(ArrivalOperations, LeaveXmlThatHasTheLeases) {
  Arriving host;
  host.recordLease();
  host.xml = host.expected;
  for (const auto handler : {&receive, &restoreSaved}) {
    const auto answer = handler(host.parsed(), host.places);
    EXPECT_EQ(answer.xml, "");
    EXPECT_TRUE(answer.leases.empty());
  }
}

TEST(ArrivalOperations, RefuseAMigrationToAHostWithoutALease) {
  const Arriving host;
  EXPECT_THAT(refusalOf(receive, host),
              testing::AllOf(HasSubstr("domain train0 cannot migrate to this host"),
                             HasSubstr("run `vfpass attach train0` here before the migration")));
  EXPECT_FALSE(std::filesystem::exists(host.places.stateDirectory)) << "a refusal writes nothing";
}

TEST(ArrivalOperations, RefuseMetadataOfAnotherVersion) {
  Arriving host;
  host.recordLease();
  const std::string attribute = "version=";
  const auto version = host.xml.find(attribute);
  ASSERT_NE(version, std::string::npos);
  host.xml.insert(version + attribute.size() + 1, "99");  // behind the quote
  EXPECT_THAT(refusalOf(receive, host), HasSubstr("install the same version of vfpass"));
  EXPECT_THAT(refusalOf(restoreSaved, host), HasSubstr("virsh managedsave-remove train0"));
}

TEST(ArrivalOperations, RefuseDevicesThatVfpassDidNotAttach) {
  Arriving host;
  host.recordLease();
  const auto bus = host.xml.find("0x3b");  // of the element; the metadata has 0000:3b:00.2
  ASSERT_NE(bus, std::string::npos);
  host.xml.replace(bus, 4, "0x3c");
  EXPECT_THAT(refusalOf(restoreSaved, host),
              HasSubstr("its devices are not those that vfpass attached"));
}

TEST(ArrivalOperations, ChangeNothingElseInARefusedImage) {
  Arriving host;
  host.lease.entry = "rail1";
  host.recordLease();  // for another entry than that of the image
  std::string answer = restoreSaved(host.parsed(), host.places).xml;
  const auto begin = answer.find("\n<vfpass:refusal ");
  ASSERT_NE(begin, std::string::npos);
  answer.erase(begin, answer.find("/>", begin) + 2 - begin);
  EXPECT_EQ(answer, host.xml);
}

TEST(ArrivalOperations, RefuseAnImageWithoutMetadata) {
  Arriving host;
  const auto begin = host.xml.find("<metadata>");
  host.xml.erase(begin, host.xml.find("</metadata>") + std::string("</metadata>").size() - begin);
  EXPECT_THAT(refusalOf(restoreSaved, host),
              testing::AllOf(HasSubstr("but no vfpass metadata"),
                             HasSubstr("run `virsh managedsave-remove train0`")));
}

TEST(SharedText, BringsWhatTheWorkerHasPut) {
  const std::string text(std::size_t{17} << 20U, 'x');  // as large as XML may be, and more
  SharedText shared;
  EXPECT_EQ(shared.get(), "");
  const pid_t worker = ::fork();
  if (worker == 0) {
    shared.put(text);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(worker, &status, 0), worker);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(shared.get() == text);
  EXPECT_THROW(shared.put(std::string(std::size_t{33} << 20U, 'x')), Error);
}

}  // namespace
}  // namespace vfpass::hook
