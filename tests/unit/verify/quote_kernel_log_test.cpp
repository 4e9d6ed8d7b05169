#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "guest_view.hpp"

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> log{
    "mlx5_core 0000:01:00.0: firmware version: 28.39",
    "mlx5_core 0000:01:00.0: failed to load",
    "nvidia_peermem: could not register: Invalid argument",
    "NVRM: Xid (PCI:0000:05:00): 79",
    "NVRM: loading NVIDIA UNIX Open Kernel Module",
    "DMAR: [DMA Read NO_PASID] Request device [01:00.0] fault addr 0x0",
};

std::string quoted(const std::string& key, Outcome outcome = Outcome::failed,
                   Observer observer = Observer::guest) {
  std::vector<Finding> findings{{key, "rail0", outcome, "", "seen", ""}};
  findings[0].observer = observer;
  quoteKernelLog(findings, log);
  return findings[0].seen;
}

TEST(QuoteKernelLogTest, QuotesLastLineThatExplainsTheFailure) {
  EXPECT_EQ(quoted("rdma-device"), "seen; the guest's kernel log: " + log[5]);
  EXPECT_EQ(quoted("gpu-path"), "seen; the guest's kernel log: " + log[3]);
  EXPECT_EQ(quoted("data-gpu"), "seen; the guest's kernel log: " + log[5]);
  EXPECT_EQ(quoted("gpu-bar"), "seen; the guest's kernel log: " + log[3]);
  std::vector<Finding> one{{"driver", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(one, {log[0], log[1], log[4]});
  EXPECT_EQ(one[0].seen, "seen; the guest's kernel log: " + log[1]);
}

// An error that ends the verification.
TEST(QuoteKernelLogTest, ExplainsWhatCouldNotBeObserved) {
  for (const char* key : {"data-host", "peer-data-host", "peer-reach"}) {
    EXPECT_EQ(quoted(key, Outcome::notObservable), "seen; the guest's kernel log: " + log[5]);
  }
  EXPECT_EQ(quoted("inventory", Outcome::notObservable), "seen; the guest's kernel log: " + log[3]);
  for (const char* key : {"driver", "gpu-tested", "other-vfs", "device-host"}) {
    EXPECT_EQ(quoted(key, Outcome::notObservable), "seen")
        << key << ": another finding explains it";
  }
  std::vector<Finding> notTried{
      {"data-gpu-to-host", "", Outcome::notObservable, "", "not tried", ""}};
  quoteKernelLog(notTried, log);
  EXPECT_EQ(notTried[0].seen, "not tried");
  std::vector<Finding> named{{"peer-reach", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(named, log, "kernel log of train1");
  EXPECT_EQ(named[0].seen, "seen; kernel log of train1: " + log[5]);
}

TEST(QuoteKernelLogTest, QuotesGpuDriverAtEveryCheckOfGpuMemory) {
  for (const char* key : {"sizes-gpu", "latency-gpu", "peer-sizes-gpu", "peer-latency-gpu",
                          "peer-together-gpu", "data-gpu-to-host", "peer-data-host-to-gpu"}) {
    std::vector<Finding> one{{key, "", Outcome::failed, "", "seen", ""}};
    quoteKernelLog(one, {log[3], log[1]});
    EXPECT_EQ(one[0].seen, "seen; the guest's kernel log: " + log[3]) << key;
  }
  std::vector<Finding> host{{"peer-sizes-host", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(host, {log[1], log[3]});
  EXPECT_EQ(host[0].seen, "seen; the guest's kernel log: " + log[1]);
}

TEST(QuoteKernelLogTest, WhatWasNotTestedHasNoCauseInLog) {
  const std::string seen = "not tested: train1 has no GPU to use";
  std::vector<Finding> one{{"peer-data-gpu", "", Outcome::notObservable, "", seen, ""}};
  quoteKernelLog(one, log);
  EXPECT_EQ(one[0].seen, seen);
}

TEST(QuoteKernelLogTest, RepeatedParametersExplainNothing) {
  std::vector<Finding> one{{"driver", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(one, {log[1], "Kernel command line: mlx5_core.error=1",
                       "mlx5_core: module verification failed: signature missing"});
  EXPECT_EQ(one[0].seen, "seen; the guest's kernel log: " + log[1]);
}

TEST(QuoteKernelLogTest, PolicyOfTheIommuIsNoComplaint) {
  std::vector<Finding> one{{"data-gpu", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(one, {"iommu: DMA domain TLB invalidation policy: lazy mode ",
                       "iommu: Default domain type: Translated "});
  EXPECT_EQ(one[0].seen, "seen");
}

TEST(QuoteKernelLogTest, WordOfAComplaintMayFollowASign) {
  const std::string line = "AMD-Vi: Event logged [IO_PAGE_FAULT device=01:00.0 domain=0x000b]";
  std::vector<Finding> one{{"data-gpu", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(one, {line, "iommu: Default domain type: Translated "});
  EXPECT_EQ(one[0].seen, "seen; the guest's kernel log: " + line);
}

TEST(QuoteKernelLogTest, OtherFindingsStay) {
  for (const Outcome outcome : {Outcome::passed, Outcome::warning, Outcome::waived}) {
    EXPECT_EQ(quoted("data-gpu", outcome), "seen");
  }
  EXPECT_EQ(quoted("device-host", Outcome::failed, Observer::host), "seen");
  EXPECT_EQ(quoted("bandwidth"), "seen") << "no line explains it";
  std::vector<Finding> none{{"driver", "", Outcome::failed, "", "seen", ""}};
  quoteKernelLog(none, {log[0], log[4]});
  EXPECT_EQ(none[0].seen, "seen") << "no complaint";
}

TEST(QuoteKernelLogTest, LogOfHostileGuestIsBounded) {
  nlohmann::json lines = nlohmann::json::array();
  for (int line = 0; line < 1000; ++line) {
    lines.push_back("mlx5 error " + std::string(254 - 12, 'x') + "\u00e9\u00e9\u00e9" +
                    std::string(1000, 'x'));
  }
  const GuestView view = readGuestView({{"kernel_log", lines}});
  ASSERT_EQ(view.kernelLog.size(), 48U);
  EXPECT_LT(view.kernelLog[0].size(), 270U);
  EXPECT_NO_THROW(nlohmann::json(view.kernelLog).dump()) << "valid UTF-8";
  EXPECT_TRUE(readGuestView({{"kernel_log", "text"}}).kernelLog.empty());
  EXPECT_EQ(readGuestView({{"kernel_log", {"a\x1b[31m"}}}).kernelLog[0], "a\\x1b[31m");
}

}  // namespace
}  // namespace vfpass::verify
