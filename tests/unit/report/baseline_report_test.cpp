#include "vfpass/report/verify_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"

namespace vfpass::report {
namespace {

using testing::ElementsAre;

Baseline sampleBaseline() {
  Baseline baseline;
  baseline.time = "2026-11-21T09:40:00Z";
  baseline.host = "host1";
  baseline.machine = "0123456789abcdef0123456789abcdef";
  baseline.pf = *parsePciAddress("0000:03:00.0");
  baseline.guid = "b8ce:f603:00aa:bbcc";
  baseline.serial = "MT2314X00001";
  baseline.firmware = "28.39.2048";
  baseline.driver = "mlx5_core 24.10-0.7.0";
  baseline.settings = {{"kernel", "6.12.1"}, {"pcie-link", "Gen5 x16"}};
  baseline.users = {"0000:03:00.2: qemu-system-x86 (pid 4711) of domain train0"};
  baseline.unseenUsers = {"0000:03:00.1: cannot tell who uses its RDMA device mlx5_1"};
  Figure host;
  host.operation = "write";
  host.memory = "host";
  host.messageBytes = 65536;
  host.checkedBytes = 65536000;
  host.gigabitsPerSecond = 391.25;
  Figure gpu = host;
  gpu.memory = "gpu";
  gpu.gpu = "0000:05:00.0";
  gpu.relaxedOrdering = true;
  baseline.figures = {host, gpu};
  return baseline;
}

std::string text(const Baseline& baseline, const Style& style) {
  std::ostringstream out;
  writeBaseline(out, baseline, style);
  return out.str();
}

TEST(BaselineReportTest, Text) { expectGolden("baseline.txt", text(sampleBaseline(), {})); }

TEST(BaselineReportTest, Json) {
  const std::string json = text(sampleBaseline(), {.json = true});
  expectGolden("baseline.json", json);
  expectValid("baseline", json);
}

TEST(BaselineReportTest, KeptBaselineIsReadAsItWas) {
  const std::string kept = text(sampleBaseline(), {.json = true});
  const auto read = readBaseline(kept);
  ASSERT_TRUE(read);
  EXPECT_EQ(text(*read, {.json = true}), kept);
}

TEST(BaselineReportTest, DamagedBaselineIsNone) {
  EXPECT_FALSE(readBaseline(""));
  EXPECT_FALSE(readBaseline("[]"));
  EXPECT_FALSE(readBaseline(R"({"time": "2026-11-21T09:40:00Z", "pf": "eth0"})"));
  const auto read = readBaseline(
      R"({"time": "now", "pf": "0000:03:00.0", "settings": {"kernel": 6}, "figures":
          [{"operation": "write", "memory": "host", "gigabits_per_second": -1}, 7]})");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->figures.empty());
  EXPECT_EQ(read->settings.at("kernel"), "");
  EXPECT_THAT(read->unseenUsers, ElementsAre("not recorded"));
}

}  // namespace
}  // namespace vfpass::report
