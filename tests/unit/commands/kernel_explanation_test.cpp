#include "verification_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

PciAddress at(const char* address) { return *parsePciAddress(address); }

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
                   Outcome outcome = Outcome::failed) {
    VerifyReport report;
    report.findings = {{key, subject, outcome, "", "seen", ""}};
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

}  // namespace
}  // namespace vfpass::commands
