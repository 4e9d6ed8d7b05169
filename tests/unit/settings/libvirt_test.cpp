// The same settings through libvirt's own parser and formatter, in its test driver: vfpass
// recognizes the elements in libvirt's output and removes all of them at detach. The driver drops
// QEMU's namespace, so that `qemu:commandline` and `qemu:override` are not tested here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/libvirt/libvirt_hypervisor.hpp"

namespace vfpass::settings {
namespace {

std::string testDomain(const std::string& extra, const std::string& inCpu) {
  std::string xml = domainXml(16, 256 * gib, extra, inCpu);
  return xml.replace(xml.find("type='kvm'"), 10, "type='test'");
}

class ThroughLibvirt : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  // The domain XML as libvirt formats it.
  std::string defined(const std::string& xml) {
    libvirt->defineDomain(Definition(xml));
    return libvirt->findDomain("train0").value().persistentXml;
  }

  [[nodiscard]] Lease leaseFor(const std::string& xml) const {
    TestHost host;
    host.capacity.nodes[0].pages[gib] = host.capacity.nodes[1].pages[gib] = {512, 512};
    Lease lease;
    lease.part = LeasedFunction{};
    lease.domain = *parseUuid("11111111-2222-3333-4444-555555555555");
    lease.domainName = "train0";
    lease.entry = "gpu0";
    lease.device = lease.pf = *parsePciAddress("0000:10:00.0");
    lease.guest = domain::placeDevices(xml, 1).front();
    lease.edits = editsOf(proposalFor(host, xml, railDevices({0, 7})));
    return lease;
  }

  std::unique_ptr<Hypervisor> libvirt = libvirt::connect("test:///default");
};

TEST_P(ThroughLibvirt, SettingIsAddedAndRemovedByteForByte) {
  const std::string before = defined(testDomain(GetParam().first, GetParam().second));
  const Lease lease = leaseFor(before);
  EXPECT_EQ(lease.edits.size(), 6U);
  const std::string attached =
      defined(domain::withLeases(before, {lease}, domain::builtInTemplates(), fake::sealKey()));
  EXPECT_TRUE(domain::carriesLeases(attached, {lease}, fake::sealKey())) << attached;
  EXPECT_EQ(
      leaseFor(domain::withLeases(attached, {}, domain::builtInTemplates(), fake::sealKey())).edits,
      lease.edits);
  EXPECT_EQ(defined(domain::withLeases(attached, {}, domain::builtInTemplates(), fake::sealKey())),
            before);
}

INSTANTIATE_TEST_SUITE_P(
    Domains, ThroughLibvirt,
    testing::Values(std::pair(std::string(), std::string()),
                    std::pair(std::string("  <memtune>\n    <soft_limit unit='KiB'>1048576"
                                          "</soft_limit>\n  </memtune>\n  <cputune>\n"
                                          "    <shares>512</shares>\n"
                                          "    <emulatorpin cpuset='0-3'/>\n  </cputune>\n"
                                          "  <memoryBacking>\n    <nosharepages/>\n"
                                          "  </memoryBacking>\n"),
                              std::string("    <topology sockets='2' dies='1' cores='8' "
                                          "threads='1'/>\n"))));

}  // namespace
}  // namespace vfpass::settings
