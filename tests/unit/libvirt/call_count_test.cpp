#include <dlfcn.h>
#include <gtest/gtest.h>
#include <libvirt/libvirt.h>

#include <map>

#include "vfpass/libvirt/libvirt_hypervisor.hpp"

// The calls that reach the daemon. These definitions take precedence over libvirt's, count, and
// call them.
namespace {

std::map<std::string, int> calls;

template <typename Function>
Function* counted(const char* name) {
  ++calls[name];
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define VFPASS_COUNT(result, name, parameters, arguments) \
  extern "C" result name parameters { return counted<result parameters>(#name) arguments; }

VFPASS_COUNT(char*, virDomainGetXMLDesc, (virDomainPtr domain, unsigned flags), (domain, flags))
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

}  // namespace
}  // namespace vfpass::libvirt
