#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <chrono>
#include <map>

#include "vfpass/libvirt/libvirt_hypervisor.hpp"

// The calls that reach the daemon. These definitions take precedence over libvirt's, count, and
// call them.
namespace {

std::map<std::string, int> calls;

// The domain or network whose XML the daemon cannot send.
std::string tooLarge;
bool failed = false;

template <typename Function>
Function* counted(const char* name) {
  ++calls[name];
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define VFPASS_COUNT(result, name, parameters, arguments) \
  extern "C" result name parameters { return counted<result parameters>(#name) arguments; }

extern "C" char* virDomainGetXMLDesc(virDomainPtr domain, unsigned flags) {
  failed = ::virDomainGetName(domain) == tooLarge;
  auto* const original = counted<char*(virDomainPtr, unsigned)>("virDomainGetXMLDesc");
  return failed ? nullptr : original(domain, flags);
}

extern "C" char* virNetworkGetXMLDesc(virNetworkPtr network, unsigned flags) {
  failed = ::virNetworkGetName(network) == tooLarge;
  auto* const original = counted<char*(virNetworkPtr, unsigned)>("virNetworkGetXMLDesc");
  return failed ? nullptr : original(network, flags);
}

// A request that the guest never answers.
extern "C" int virDomainDetachDeviceAlias(virDomainPtr /*domain*/, const char* /*alias*/,
                                          unsigned /*flags*/) {
  return 0;
}

// As the daemon answers: remoteDispatchDomainGetXMLDesc cannot encode more than 4 MiB.
extern "C" virErrorPtr virGetLastError() {
  static char message[] = "Unable to encode message payload";
  static virError error{};
  error.code = VIR_ERR_RPC;
  error.message = message;
  using Original = virErrorPtr();
  return failed ? &error : reinterpret_cast<Original*>(::dlsym(RTLD_NEXT, "virGetLastError"))();
}

VFPASS_COUNT(int, virDomainIsActive, (virDomainPtr domain), (domain))
VFPASS_COUNT(int, virDomainIsPersistent, (virDomainPtr domain), (domain))
VFPASS_COUNT(int, virDomainHasManagedSaveImage, (virDomainPtr domain, unsigned flags),
             (domain, flags))
VFPASS_COUNT(virDomainPtr, virDomainLookupByName, (virConnectPtr connection, const char* name),
             (connection, name))
VFPASS_COUNT(virDomainPtr, virDomainLookupByUUID,
             (virConnectPtr connection, const unsigned char* uuid), (connection, uuid))
VFPASS_COUNT(int, virConnectListAllDomains,
             (virConnectPtr connection, virDomainPtr** domains, unsigned flags),
             (connection, domains, flags))

namespace vfpass::libvirt {
namespace {

Definition numbered(int number) {
  return Definition("<domain type='test'><name>d" + std::to_string(number) +
                    "</name><memory>1024</memory><os><type arch='i686'>hvm</type></os></domain>");
}

// The test driver has one running persistent domain from the beginning.
TEST(LibvirtCalls, ListingReadsTheXmlOfEachDomainAndTheStatesOfAllTogether) {
  const auto hypervisor = connect("test:///default");
  constexpr int defined = 20;
  for (int number = 0; number < defined; ++number) {
    hypervisor->defineDomain(numbered(number));
  }
  calls.clear();
  ASSERT_EQ(hypervisor->listDomains().size(), defined + 1U);
  const std::map<std::string, int> expected = {{"virConnectListAllDomains", 4},
                                               {"virDomainGetXMLDesc", defined + 2}};
  EXPECT_EQ(calls, expected);
}

TEST(LibvirtCalls, ListingTellsRunningFromDefinedDomains) {
  const auto hypervisor = connect("test:///default");
  hypervisor->defineDomain(numbered(0));
  const auto domains = hypervisor->listDomains();
  ASSERT_EQ(domains.size(), 2U);
  EXPECT_EQ(domains[0].name, "d0");
  EXPECT_FALSE(domains[0].active);
  EXPECT_TRUE(domains[0].persistent);
  EXPECT_FALSE(domains[0].managedSave);
  EXPECT_NE(domains[0].persistentXml, "");
  EXPECT_EQ(domains[0].liveXml, "");
  EXPECT_TRUE(domains[1].active);
  EXPECT_TRUE(domains[1].persistent);
  EXPECT_NE(domains[1].liveXml, "");
}

TEST(LibvirtCalls, DomainThatCannotBeReadDoesNotEndTheListing) {
  const auto hypervisor = connect("test:///default");
  hypervisor->defineDomain(numbered(0));
  hypervisor->defineDomain(numbered(1));
  tooLarge = "d0";
  const auto domains = hypervisor->listDomains();
  const auto found = hypervisor->findDomain("d0");
  tooLarge.clear();
  failed = false;
  ASSERT_EQ(domains.size(), 3U);
  ASSERT_TRUE(found.has_value());
  for (const DomainDescription& domain : {domains[0], *found}) {
    EXPECT_EQ(domain.name, "d0");
    EXPECT_TRUE(domain.persistent);
    EXPECT_FALSE(domain.persistentXml.empty()) << "it is not transient";
    ASSERT_NE(domain.persistentXml.fault(), nullptr);
    EXPECT_THROW(static_cast<void>(domain.persistentXml.text()), Error);
    const Error& fault = *domain.persistentXml.fault();
    EXPECT_THAT(fault.what(), testing::HasSubstr("XML of domain 'd0': too large for libvirt"));
    EXPECT_THAT(fault.what(), testing::Not(testing::HasSubstr("lost the connection")));
    EXPECT_THAT(fault.remedy(),
                testing::HasSubstr("`virsh metadata d0 --uri URI --remove --config`"));
  }
  EXPECT_EQ(domains[1].persistentXml.fault(), nullptr);
  EXPECT_NE(domains[1].persistentXml, "");
}

TEST(LibvirtCalls, NetworkThatCannotBeReadDoesNotEndTheListing) {
  const auto hypervisor = connect("test:///default");
  tooLarge = "default";
  const auto networks = hypervisor->listNetworks();
  tooLarge.clear();
  failed = false;
  ASSERT_EQ(networks.size(), 1U);
  ASSERT_NE(networks[0].xml.fault(), nullptr);
  EXPECT_THAT(networks[0].xml.fault()->what(),
              testing::HasSubstr("XML of network 'default': too large for libvirt to send"));
  EXPECT_THAT(networks[0].xml.fault()->remedy(),
              testing::HasSubstr("`virsh net-metadata default --uri URI --remove --current`"));
  EXPECT_EQ(hypervisor->listNetworks()[0].xml.fault(), nullptr);
}

// The XML is the only evidence that a device is gone if its event is lost.
TEST(LibvirtCalls, XmlThatCannotBeReadDoesNotShowThatADeviceIsGone) {
  const auto hypervisor = connect("test:///default");
  const auto running = hypervisor->findDomain("test");
  ASSERT_TRUE(running && running->active);
  const auto detach = [&] {
    hypervisor->detachDevice(running->uuid, "ua-vfpass-rail0", std::chrono::milliseconds(1), [] {});
  };
  EXPECT_NO_THROW(detach()) << "the domain has no such device";
  tooLarge = "test";
  EXPECT_THROW(detach(), Error);
  tooLarge.clear();
  failed = false;
}

}  // namespace
}  // namespace vfpass::libvirt
