// GPUs that may share an x-nv-gpudirect-clique.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::settings {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNull;
using testing::NotNull;
using testing::SizeIs;

std::vector<GuestDevice> withCliques(std::vector<GuestDevice> devices,
                                     std::vector<unsigned> cliques) {
  for (std::size_t i = 0; i < cliques.size(); ++i) {
    devices[2 * i].clique = cliques[i];
  }
  return devices;
}

// A second GPU below the switch of rail 0.
TestHost withTwins() {
  TestHost host;
  for (auto& function : host.topology.functions) {
    if (toString(function.address) == "0000:11:00.0") {
      function.role = FunctionRole::gpu;
      function.vendor = 0x10de;
      function.classCode = 0x030200;
    }
  }
  return host;
}

TEST(Clique, JoinsGpusOfOneSwitch) {
  const TestHost host = withTwins();
  auto devices = railDevices({0});
  devices[1].vf = false;
  devices[0].clique = devices[1].clique = 3;
  const auto proposal = proposalFor(host, domainXml(2, 16 * gib), devices);
  EXPECT_THAT(proposal.faults, IsEmpty());
  EXPECT_EQ(
      elementsOf(proposal, "gpu-clique"),
      "<qemu:device alias='ua-vfpass-gpu0'><qemu:frontend><qemu:property "
      "name='x-nv-gpudirect-clique' type='unsigned' value='3'/></qemu:frontend></qemu:device>"
      "<qemu:device alias='ua-vfpass-rail0'><qemu:frontend><qemu:property "
      "name='x-nv-gpudirect-clique' type='unsigned' value='3'/></qemu:frontend></qemu:device>");
}

TEST(Clique, NamesPairThatMustNotShareClique) {
  const TestHost host;
  const auto proposal =
      proposalFor(host, domainXml(2, 16 * gib), withCliques(railDevices({0, 1}), {0, 0}));
  ASSERT_THAT(proposal.faults, SizeIs(1));
  EXPECT_THAT(proposal.faults[0].what,
              AllOf(HasSubstr("gpu0 (0000:10:00.0) and gpu1 (0000:20:00.0)"), HasSubstr("clique 0"),
                    HasSubstr("PHB")));
  EXPECT_THAT(settingOf(proposal, "gpu-clique"), IsNull());
}

TEST(Clique, AcceptsDifferentNumbersAtAnyDistance) {
  const TestHost host;
  const auto proposal =
      proposalFor(host, domainXml(2, 16 * gib), withCliques(railDevices({0, 7}), {0, 1}));
  EXPECT_THAT(proposal.faults, IsEmpty());
  EXPECT_THAT(settingOf(proposal, "gpu-clique"), NotNull());
}

TEST(Clique, RejectsOtherThanNvidiaGpus) {
  TestHost host;
  for (auto& function : host.topology.functions) {
    function.vendor = function.vendor == 0x10de ? 0x1002 : function.vendor;
  }
  const auto other = proposalFor(host, domainXml(2, 16 * gib), withCliques(railDevices({0}), {0}));
  ASSERT_THAT(other.faults, SizeIs(1));
  EXPECT_THAT(other.faults[0].what, HasSubstr("is not an NVIDIA GPU"));
  const std::vector<GuestDevice> absent{{"gpu0", *parsePciAddress("0000:ff:00.0"), false, 0}};
  EXPECT_THAT(proposalFor(host, domainXml(2, 16 * gib), absent).faults, SizeIs(1));
}

TEST(Clique, RequiresLibvirtWithOverrides) {
  const TestHost host;
  const auto proposal = propose({host.topology,
                                 host.capacity,
                                 domain::readDomainFacts(domainXml(2, 16 * gib)),
                                 {Version{8, 1}, Version{7, 2}},
                                 withCliques(railDevices({0}), {0}),
                                 {}});
  ASSERT_THAT(proposal.faults, SizeIs(1));
  EXPECT_THAT(proposal.faults[0].what, HasSubstr("libvirt 8.1"));
}

TEST(Clique, KeepsOverrideOfAdministrator) {
  const TestHost host;
  std::string xml = domainXml(2, 16 * gib);
  xml.replace(xml.find("</domain>"), 0,
              "  <qemu:override xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
              "    <qemu:device alias='ua-vfpass-gpu0'>\n      <qemu:frontend>\n"
              "        <qemu:property name='x-nv-gpudirect-clique' type='unsigned' value='9'/>\n"
              "      </qemu:frontend>\n    </qemu:device>\n  </qemu:override>\n");
  const auto proposal = proposalFor(host, xml, withCliques(railDevices({0}), {0}));
  ASSERT_THAT(settingOf(proposal, "gpu-clique"), NotNull());
  EXPECT_EQ(settingOf(proposal, "gpu-clique")->standing, SettingStanding::administrators);
}

}  // namespace
}  // namespace vfpass::settings
