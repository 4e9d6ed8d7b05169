#include <gtest/gtest.h>

#include <array>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

/// A second GPU and a second PF, which have every fault that a card can have.
class UsedDevices : public testing::Test, public DoctoredHost {
 protected:
  UsedDevices() {
    const auto bridge = builder.hostBridge("pci0000:40", 0);
    const auto port = builder.function(FunctionRole::rootPort, "0000:40:01.0", bridge);
    spareGpu = builder.gpu("0000:41:00.0", bridge, port);
    sparePf = builder.pf("0000:42:00.0", "mlx5_9", bridge, port);
    function(port).path = "0000:40:01.0";
    function(spareGpu).path = "0000:41:00.0";
    function(sparePf).path = "0000:42:00.0";
    function(spareGpu).driver = "nouveau";
    function(sparePf).totalVfs = 0;
    function(sparePf).rdma[0].firmware = "16.35.1012";
    function(sparePf).rdma[0].ports[0].state = "DOWN";
    file(spareGpu, "boot_vga", "1\n");
    file(spareGpu, "reset_method", "\n");
    file(spareGpu, "resource", "garbage\n");
    file("vfpass/firmware/0000:42:00.0", "SRIOV_EN False(0) False(0)\n");
  }
  /// The worst outcome of a check about one subject.
  Outcome about(const std::string& key, const std::string& subject) const {
    for (const Finding& each : findings(key)) {
      if (each.subject == subject) {
        return each.outcome;
      }
    }
    return Outcome::waived;
  }
  std::size_t spareGpu = 0;
  std::size_t sparePf = 0;
};

constexpr std::array gpuChecks{"gpu-bar", "gpu-driver", "gpu-reset", "gpu-console"};

TEST_F(UsedDevices, EveryDeviceCountsUntilOneIsNamed) {
  for (const char* key : gpuChecks) {
    EXPECT_EQ(about(key, "0000:41:00.0"), Outcome::failed) << key;
  }
  EXPECT_EQ(about("sriov-firmware", "mlx5_9"), Outcome::failed);
  EXPECT_EQ(about("firmware-settings", "mlx5_9"), Outcome::failed);
  EXPECT_EQ(about("iommu-group", "0000:41:00.0"), Outcome::waived);  // no groups in this tree
}

TEST_F(UsedDevices, UnusedDeviceIsWarningAtMost) {
  require({});
  requirements.functions = {function(gpu).address};
  for (const char* key : gpuChecks) {
    EXPECT_EQ(about(key, "0000:41:00.0"), Outcome::warning) << key;
  }
  EXPECT_EQ(about("sriov-firmware", "mlx5_9"), Outcome::warning);
  EXPECT_EQ(about("firmware-settings", "mlx5_9"), Outcome::warning);
  EXPECT_THAT(findings("gpu-console").back().seen, testing::EndsWith("nothing uses this device"));
  EXPECT_EQ(about("pf-link", "mlx5_9"), Outcome::waived);  // not checked at all
}

TEST_F(UsedDevices, MappingPolicyLeaseAndSelectionMakeDeviceUsed) {
  require({});
  const PciAddress spare = function(spareGpu).address;
  for (auto* names : {&requirements.functions, &requirements.policyPfs, &requirements.leased}) {
    *names = {spare};
    EXPECT_EQ(about("gpu-console", "0000:41:00.0"), Outcome::failed);
    names->clear();
    EXPECT_EQ(about("gpu-console", "0000:41:00.0"), Outcome::warning);
  }
  requirements.selected = {spare};
  EXPECT_EQ(about("gpu-console", "0000:41:00.0"), Outcome::failed);
  requirements.selected = {function(gpu).address};
  requirements.functions = {spare};  // the selection decides
  EXPECT_EQ(about("gpu-console", "0000:41:00.0"), Outcome::warning);
}

TEST_F(UsedDevices, NameOfRemovedCardSelectsNothing) {
  requirements.leased = {{0, 0x77, 0, 0}};
  EXPECT_EQ(about("gpu-console", "0000:41:00.0"), Outcome::failed);
}

TEST_F(UsedDevices, PairsOfUsedDevicesComeFirst) {
  require({});
  requirements.functions = {function(spareGpu).address};  // its PF is far away, another one is near
  ASSERT_FALSE(findings("acs").empty());
  EXPECT_EQ(findings("acs").front().subject, "0000:41:00.0 with mlx5_0");
}

// Below the GPU's switch as well, but not the nearest PF by address.
TEST_F(UsedDevices, AtsIsRequiredOfEveryUsedPfBelowSwitch) {
  const auto second = builder.pf("0000:03:00.7", "mlx5_1", 0, nicPort);
  function(second).path = "0000:03:00.7";
  builder.topology = builder.sorted();
  const auto* moved = findFunction(builder.topology, {0, 3, 0, 7});
  ASSERT_NE(moved, nullptr);
  file("sys/devices/" + moved->path + "/config", std::string(4096, '\0'));
  EXPECT_EQ(about("ats", "mlx5_1"), Outcome::waived);
  requirements.selected = {moved->address, {0, 4, 0, 0}};
  EXPECT_EQ(about("ats", "mlx5_1"), Outcome::failed);
}

TEST(RequirementsOfPolicy, EntryOfHostYamlUsesItsPf) {
  DoctoredHost host;
  PfPolicy policy;
  policy.pf.rdma = "mlx5_0";
  const auto requirements = requirementsOf(host.builder.topology, {}, {"", {policy}}, false);
  EXPECT_EQ(requirements.policyPfs, std::vector<PciAddress>{host.function(host.pf).address});
}

}  // namespace
}  // namespace vfpass::doctor
