// The guest's physical address space, which RAM and BARs share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "setting_proposals.hpp"
#include "support.hpp"

namespace vfpass::settings {
namespace {

using testing::HasSubstr;
using testing::IsNull;
using testing::NotNull;

const std::vector<unsigned> allRails{0, 1, 2, 3, 4, 5, 6, 7};

AddressNeeds needsOf(const TestHost& host, std::uint64_t bytes,
                     const std::vector<GuestDevice>& devices) {
  DomainFacts facts;
  facts.bytes = bytes;
  return addressNeeds({host.topology, host.capacity, facts, {}, devices, {}});
}

TEST(AddressNeeds, AlignsWindowToLargestBarOfEachPort) {
  const TestHost host;
  const auto needs = needsOf(host, 1024 * gib, railDevices(allRails));
  EXPECT_EQ(needs.window, 4096 * gib) << "8 x 256 GiB for the GPUs, and the VFs behind their ports";
  EXPECT_EQ(needs.bits, 43U);
}

// Four H100 NVL: the driver saw 3, 2 and 1 of them with 256, 512 and 768 GB of RAM in 40 bits.
TEST(AddressNeeds, CountsRamAndBarsTogether) {
  const TestHost host;
  for (const std::uint64_t ram : {256UL, 512UL, 768UL}) {
    std::vector<GuestDevice> gpus;
    for (const GuestDevice& device : railDevices({0, 1, 2, 3})) {
      if (!device.vf) {
        gpus.push_back(device);
      }
    }
    const auto needs = needsOf(host, ram * gib, gpus);
    EXPECT_EQ(needs.window, 1024 * gib);
    EXPECT_GT(needs.bits, defaultBits) << ram;
  }
}

TEST(AddressNeeds, AvoidsRangeReservedByAmd) {
  TestHost host;
  const auto intel = needsOf(host, 900 * gib, railDevices({0}));
  host.topology.processors.vendor = "AuthenticAMD";
  const auto amd = needsOf(host, 900 * gib, railDevices({0}));
  EXPECT_GT(amd.end, intel.end) << "QEMU moves RAM above 1 TiB there";
}

TEST(AddressSpace, ProposesHostAddressBits) {
  const TestHost host;
  const auto proposal = proposalFor(host, domainXml(64, 768 * gib), railDevices({0, 1, 2, 3}));
  EXPECT_EQ(elementsOf(proposal, "guest-address-bits"), "<maxphysaddr mode='passthrough'/>");
  EXPECT_THAT(settingOf(proposal, "guest-address-bits")->reason, HasSubstr("the guest has 40"));
  EXPECT_EQ(elementsOf(proposal, "pci-hole"),
            "<pcihole64 unit='KiB'>" + std::to_string(2048ULL << 20U) + "</pcihole64>");
  EXPECT_THAT(settingOf(proposal, "firmware-window"), IsNull()) << "52 bits give OVMF 512 TiB";
}

TEST(AddressSpace, ProposesNothingForSmallBars) {
  const TestHost host(gib);
  const auto proposal = proposalFor(host, domainXml(8, 16 * gib), railDevices({0}));
  for (const char* name : {"guest-address-bits", "pci-hole", "firmware-window", "firmware"}) {
    EXPECT_THAT(settingOf(proposal, name), IsNull()) << name;
  }
}

TEST(AddressSpace, ProposesOvmfWindowWhenDefaultIsTooSmall) {
  TestHost host;
  host.capacity.addressBits = 39;  // a desktop: OVMF chooses 64 GiB
  const auto proposal =
      proposalFor(host, domainXml(8, 16 * gib, "", "    <maxphysaddr mode='passthrough'/>\n"),
                  {railDevices({0})[0]});
  EXPECT_EQ(elementsOf(proposal, "firmware-window"),
            "<qemu:arg value='-fw_cfg'/><qemu:arg "
            "value='name=opt/ovmf/X-PciMmio64Mb,string=262144'/>");
  EXPECT_THAT(settingOf(proposal, "guest-address-bits"), IsNull());
}

TEST(AddressSpace, ReportsWhenHostHasTooFewAddressBits) {
  TestHost host;
  host.capacity.addressBits = 40;
  const auto proposal = proposalFor(host, domainXml(64, 768 * gib), railDevices({0, 1, 2, 3}));
  const DomainSetting* setting = settingOf(proposal, "guest-address-bits");
  ASSERT_THAT(setting, NotNull());
  EXPECT_EQ(setting->standing, SettingStanding::manual);
  EXPECT_THAT(setting->reason, HasSubstr("the host's CPUs have 40"));
  EXPECT_THAT(settingOf(proposal, "pci-hole"), IsNull()) << "QEMU would exit";
}

TEST(AddressSpace, KeepsValuesOfAdministrator) {
  const TestHost host;
  const std::string xml =
      domainXml(64, 768 * gib, "", "    <maxphysaddr mode='emulate' bits='40'/>\n");
  const auto proposal = proposalFor(host, xml, railDevices({0, 1, 2, 3}));
  ASSERT_THAT(settingOf(proposal, "guest-address-bits"), NotNull());
  EXPECT_EQ(settingOf(proposal, "guest-address-bits")->standing, SettingStanding::administrators);
  EXPECT_FALSE(settingOf(proposal, "guest-address-bits")->edit);
  EXPECT_THAT(settingOf(proposal, "pci-hole"), IsNull()) << "it does not fit into 40 bits";
}

TEST(AddressSpace, ReportsLibvirtThatIsTooOld) {
  const TestHost host;
  DomainFacts facts;
  facts.architecture = "x86_64";
  facts.uefi = facts.cpuElement = facts.pcieRoot = true;
  facts.bytes = 64 * gib;
  const auto proposal = propose(
      {host.topology, host.capacity, facts, {Version{8, 6}, Version{7, 2}}, railDevices({0}), {}});
  ASSERT_THAT(settingOf(proposal, "guest-address-bits"), NotNull());
  EXPECT_EQ(settingOf(proposal, "guest-address-bits")->standing, SettingStanding::manual);
  EXPECT_THAT(settingOf(proposal, "guest-address-bits")->reason, HasSubstr("libvirt 8.6"));
}

TEST(Firmware, IsLeftToAdministrator) {
  const TestHost host;
  std::string xml = domainXml(8, 16 * gib);
  xml.replace(xml.find(" firmware='efi'"), 15, "");
  const auto proposal = proposalFor(host, xml, railDevices({0}));
  ASSERT_THAT(settingOf(proposal, "firmware"), NotNull());
  EXPECT_EQ(settingOf(proposal, "firmware")->standing, SettingStanding::manual);
  EXPECT_THAT(settingOf(proposalFor(host, domainXml(8, 16 * gib), railDevices({0})), "firmware"),
              IsNull());
}

TEST(LargeBars, ReportStallOfOlderQemu) {
  const TestHost host(256 * gib);
  const auto proposal = proposalFor(host, domainXml(8, 16 * gib), railDevices({0}));
  ASSERT_THAT(settingOf(proposal, "large-bars"), NotNull());
  EXPECT_THAT(settingOf(proposal, "large-bars")->reason, HasSubstr("QEMU 7.2"));
  EXPECT_FALSE(settingOf(proposal, "large-bars")->edit) << "x-no-mmap would end GPUDirect RDMA";
  const auto newer =
      propose({host.topology, host.capacity, {}, {{}, Version{10, 1}}, railDevices({0}), {}});
  EXPECT_THAT(settingOf(newer, "large-bars"), IsNull());
}

}  // namespace
}  // namespace vfpass::settings
