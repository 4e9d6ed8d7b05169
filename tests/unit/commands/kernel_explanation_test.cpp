#include "verification_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/values.hpp"

namespace vfpass::commands {
namespace {

class KernelExplanationTest : public testing::Test {
 protected:
  KernelExplanationTest() {
    Lease vf;
    vf.entry = "rail0";
    vf.pf = at("0000:03:00.0");
    vf.device = at("0000:03:00.2");
    Lease gpu;
    gpu.part = LeasedFunction{};
    gpu.entry = "gpu0";
    gpu.pf = gpu.device = at("0000:04:00.0");
    leases = {vf, gpu};
  }
  /// What was seen, after the explanation.
  std::string seen(const std::string& key, const std::string& subject, const std::string& log,
                   Outcome outcome = Outcome::failed, const std::string& remedy = {}) {
    VerifyReport report;
    report.findings = {{key, subject, outcome, "", "seen", remedy}};
    explainByKernelLog(doctor::readKernelLines(log), leases, report);
    return report.findings[0].seen;
  }

  std::vector<Lease> leases;
};

TEST_F(KernelExplanationTest, QuotesLineAboutDeviceOfFailedEntry) {
  const std::string fault = "DMAR: [DMA Read] Request device [03:00.2] fault addr 0xbe00";
  const std::string health = "mlx5_core 0000:03:00.0: device's health compromised";
  EXPECT_EQ(seen("data-host", "rail0", fault), "seen (kernel: " + fault + ")");
  EXPECT_EQ(seen("link", "rail0", health), "seen (kernel: " + health + ")") << "its PF";
  EXPECT_EQ(seen("peer-data-host", "rail0 to rail0", fault), "seen (kernel: " + fault + ")");
  EXPECT_EQ(seen("data-host", "train1 rail0", fault), "seen") << "the other VM's";
  EXPECT_EQ(seen("data-host", "rail01", fault), "seen");
  EXPECT_EQ(seen("data-host", "rail0", fault, Outcome::passed), "seen");
  EXPECT_EQ(seen("data-host", "rail0", ""), "seen");
}

TEST_F(KernelExplanationTest, QuotesErrorOfGpuForGpuMemoryOnly) {
  const std::string xid = "NVRM: Xid (PCI:0000:04:00): 48, Double Bit ECC Error";
  EXPECT_EQ(seen("data-gpu", "rail0", xid), "seen (kernel: " + xid + ")");
  EXPECT_EQ(seen("gpu-driver", "", xid), "seen (kernel: " + xid + ")");
  EXPECT_EQ(seen("data-host", "rail0", xid), "seen");
}

TEST_F(KernelExplanationTest, WrongBytesAreExplainedOnlyByFaultsOfDevices) {
  const std::string speed =
      "mlx5_core 0000:03:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 "
      "link";
  const std::string query = "mlx5_core 0000:03:00.0: mlx5_cmd_out_err: QUERY failed, status 3";
  const std::string fault = "DMAR: [DMA Read] Request device [03:00.2] fault addr 0xbe00";
  constexpr const char* corrupted =
      "compare firmware and driver with those of a working host: the device or its driver corrupts "
      "data";
  const auto seenOf = [&](const std::string& log) {
    return seen("data-host", "rail0", log, Outcome::failed, corrupted);
  };
  EXPECT_EQ(seenOf(speed), "seen");
  EXPECT_EQ(seenOf(query), "seen");
  EXPECT_EQ(seenOf(fault + "\n" + query), "seen (kernel: " + fault + ")");
  EXPECT_EQ(seen("data-host", "rail0", query), "seen (kernel: " + query + ")") << "no wrong bytes";
  EXPECT_EQ(seen("data-host", "rail0", speed), "seen");
  EXPECT_EQ(seen("bandwidth", "rail0", speed), "seen (kernel: " + speed + ")");
}

TEST_F(KernelExplanationTest, SummaryOfFailedTestsIsNotExplainedAgain) {
  VerifyReport report;
  report.findings = {{"gpu-tested", "gpu0", Outcome::failed, "", "failed with rail0", ""}};
  explainByKernelLog(
      doctor::readKernelLines("NVRM: Xid (PCI:0000:04:00): 48, Double Bit ECC Error"), leases,
      report);
  EXPECT_EQ(report.findings[0].seen, "failed with rail0");
}

/// A failed finding, after what the host's mapping of BARs explains.
Finding explained(const std::string& key, std::optional<bool> possible,
                  const std::string& subject = "rail0", const std::string& remedy = "look") {
  PeerMapping peers;
  peers.possible = possible;
  peers.reason = "iommufd of Linux 6.18 maps no BARs";
  peers.remedy = "remove iommufd='yes'";
  VerifyReport report;
  report.peerName = "train1, host3:train2";
  report.findings = {{key, subject, Outcome::failed, "", "seen", remedy}};
  explainByPeerMapping(peers, report);
  return report.findings[0];
}

TEST(PeerMappingExplanationTest, FailedDataOfGpuMemoryNamesBarThatTheHostDoesNotMap) {
  for (const char* key : {"data-gpu", "data-gpu-to-host", "peer-data-host-to-gpu"}) {
    const Finding finding = explained(key, false);
    EXPECT_EQ(finding.seen, "seen (peer-mapping of this host: iommufd of Linux 6.18 maps no BARs)");
    EXPECT_EQ(finding.remedy, "remove iommufd='yes'; then look");
  }
}

TEST(PeerMappingExplanationTest, ExplainsNothingElse) {
  constexpr const char* corrupted =
      "compare firmware and driver with those of a working host: the device or its driver corrupts "
      "data";
  EXPECT_EQ(explained("data-gpu", true).seen, "seen");
  EXPECT_EQ(explained("data-gpu", std::nullopt).seen, "seen");
  EXPECT_EQ(explained("data-host", false).seen, "seen");
  EXPECT_EQ(explained("gpu-path", false).seen, "seen");
  EXPECT_EQ(explained("data-gpu", false, "train1:rail0").seen, "seen") << "the other VM's";
  EXPECT_EQ(explained("data-gpu", false, "rail0", corrupted).seen, "seen") << "bytes arrived";
}

}  // namespace
}  // namespace vfpass::commands
