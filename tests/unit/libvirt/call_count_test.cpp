#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "libvirt_functions.hpp"
#include "vfpass/libvirt/libvirt_hypervisor.hpp"

namespace vfpass::libvirt {
namespace {

// How often the functions that reach the daemon are called.
std::map<std::string, int> calls;

// The domain or network whose XML the daemon cannot send.
std::string tooLarge;
bool failed = false;

template <auto& function>
auto* original() {
  static auto* const found = function.pointer();
  return found;
}

template <auto& function>
auto counted(auto... arguments) {
  ++calls[function.name()];
  return original<function>()(arguments...);
}

char* domainXml(virDomainPtr domain, unsigned flags) {
  failed = virDomainGetName(domain) == tooLarge;
  return failed ? nullptr : counted<virDomainGetXMLDesc>(domain, flags);
}

char* networkXml(virNetworkPtr network, unsigned flags) {
  failed = virNetworkGetName(network) == tooLarge;
  return failed ? nullptr : counted<virNetworkGetXMLDesc>(network, flags);
}

// As the daemon answers: remoteDispatchDomainGetXMLDesc cannot encode more than 4 MiB.
virErrorPtr lastError() {
  static char message[] = "Unable to encode message payload";
  static virError error{};
  error.code = VIR_ERR_RPC;
  error.message = message;
  return failed ? &error : original<virGetLastError>()();
}

class LibvirtCalls : public testing::Test {
 protected:
  LibvirtCalls() {
    count<virDomainIsActive>();
    count<virDomainIsPersistent>();
    count<virDomainHasManagedSaveImage>();
    count<virDomainLookupByName>();
    count<virDomainLookupByUUID>();
    count<virConnectListAllDomains>();
    replace<virDomainGetXMLDesc>(domainXml);
    replace<virNetworkGetXMLDesc>(networkXml);
    replace<virGetLastError>(lastError);
    // A request that the guest never answers.
    replace<virDomainDetachDeviceAlias>([](virDomainPtr, const char*, unsigned) { return 0; });
  }
  ~LibvirtCalls() override {
    tooLarge.clear();
    failed = false;
    for (const auto& restore : restores_) {
      restore();
    }
  }

 private:
  template <auto& function, typename Replacement>
  void replace(Replacement replacement) {
    original<function>();
    function.replace(replacement);
    restores_.emplace_back([] { function.replace(nullptr); });
  }
  template <auto& function>
  void count() {
    replace<function>([](auto... arguments) { return counted<function>(arguments...); });
  }

  std::vector<std::function<void()>> restores_;
};

Definition numbered(int number) {
  return Definition("<domain type='test'><name>d" + std::to_string(number) +
                    "</name><memory>1024</memory><os><type arch='i686'>hvm</type></os></domain>");
}

// The test driver has one running persistent domain from the beginning.
TEST_F(LibvirtCalls, ListingReadsTheXmlOfEachDomainAndTheStatesOfAllTogether) {
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

TEST_F(LibvirtCalls, ListingTellsRunningFromDefinedDomains) {
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

TEST_F(LibvirtCalls, DomainThatCannotBeReadDoesNotEndTheListing) {
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

TEST_F(LibvirtCalls, NetworkThatCannotBeReadDoesNotEndTheListing) {
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
TEST_F(LibvirtCalls, XmlThatCannotBeReadDoesNotShowThatADeviceIsGone) {
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
