#include "vfpass/verify/host_baseline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sound_inventory.hpp"
#include "unit/values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Json = nlohmann::json;

/// A host whose PF is at 0000:01:00.0 and moves data as requested.
class MeasureBaselineTest : public testing::Test {
 protected:
  MeasureBaselineTest() : inventory(Json::parse(soundInventory)) {}

  std::chrono::seconds timeout{600};

  std::vector<Figure> measure(const std::optional<PciAddress>& gpu = std::nullopt) {
    BaselinePlan plan{at("0000:01:00.0"), gpu};
    plan.timeout = timeout;
    return measureBaseline([this](const auto& arguments) { return answer(arguments); }, plan,
                           [](const std::string&) {});
  }
  std::string problem(const std::optional<PciAddress>& gpu = std::nullopt) {
    try {
      measure(gpu);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::unverified);
      EXPECT_NE(error.remedy(), "");
      return error.what();
    }
  }

  Json answer(const std::vector<std::string>& arguments) {
    if (arguments.front() == "inventory") {
      inventoryOptions.assign(arguments.begin() + 1, arguments.end());
      return inventory;
    }
    calls.push_back(join(arguments, " "));
    const bool onGpu = calls.back().find("--target-memory gpu") != std::string::npos;
    Json report{{"passed", correct}, {"runs", Json::array()}};
    if (onGpu) {
      report["runs"].push_back(runIn("host"));
    }
    report["runs"].push_back(runIn(onGpu ? "gpu" : "host"));
    return report;
  }
  [[nodiscard]] Json runIn(const char* memory) const {
    return {{"passed", correct},
            {"memory",
             {{"initiator", {{"kind", memory}}},
              {"target", {{"kind", memory}, {"registration", "dma-buf"}}}}},
            {"owners",
             {{"target", {{"bytes_checked", 1U << 30U}}},
              {"initiator", {{"bytes_checked", 1U << 30U}}}}},
            {"bandwidth", {{"gigabits_per_second", 97.5}}}};
  }

  Json inventory;
  bool correct = true;
  std::vector<std::string> calls;
  std::vector<std::string> inventoryOptions;
};

TEST_F(MeasureBaselineTest, MeasuresAsVerifyDoes) {
  const auto figures = measure();
  ASSERT_THAT(figures, SizeIs(4)) << "write and read, with and without relaxed ordering";
  EXPECT_EQ(figures[0].operation, "write");
  EXPECT_EQ(figures[0].memory, "host");
  EXPECT_EQ(figures[0].messageBytes, 65536U);
  EXPECT_DOUBLE_EQ(figures[0].gigabitsPerSecond, 97.5);
  EXPECT_TRUE(figures[3].relaxedOrdering);
  EXPECT_THAT(calls, Each(HasSubstr("loopback --device mlx5_0 --ib-port 1")));
  EXPECT_THAT(inventoryOptions, ElementsAre("--no-gpus")) << "libcuda may load NVIDIA's modules";
}

TEST_F(MeasureBaselineTest, ProbeEndsWithinTimeout) {
  timeout = std::chrono::seconds(100);
  measure();
  EXPECT_THAT(calls, Each(HasSubstr("--deadline 40")));
}

TEST_F(MeasureBaselineTest, MeasuresMemoryOfGpuThatHostUses) {
  inventory["gpus"] = {{"libcuda", {{"found", true}, {"detail", ""}}},
                       {"devices", {{{"pci", "0000:05:00.0"}, {"index", 0}, {"name", "H100"}}}}};
  const auto figures = measure(at("0000:05:00.0"));
  ASSERT_THAT(figures, SizeIs(8));
  EXPECT_THAT(inventoryOptions, IsEmpty());
  EXPECT_EQ(figures[4].memory, "gpu");
  EXPECT_EQ(figures[4].gpu, "0000:05:00.0");
  EXPECT_THAT(calls.back(), HasSubstr("--gpu 0000:05:00.0"));
}

TEST_F(MeasureBaselineTest, GpuThatHostCannotUseIsRefusedBeforeMeasuring) {
  EXPECT_THAT(problem(at("0000:05:00.0")), HasSubstr("the host's driver cannot use it"));
  EXPECT_THAT(calls, SizeIs(0));
}

TEST_F(MeasureBaselineTest, PortThatCannotMoveDataIsRefused) {
  inventory["rdma"]["devices"][0]["ports"][0]["state"] = "1: DOWN";
  EXPECT_THAT(problem(), HasSubstr("no active port with a GID"));
  inventory["rdma"]["devices"][0]["pci"] = "0000:02:00.0";
  EXPECT_THAT(problem(), HasSubstr("no RDMA device"));
  inventory["rdma"]["libibverbs"] = {{"found", false}, {"detail", "libibverbs.so.1 is missing"}};
  EXPECT_THAT(problem(), HasSubstr("libibverbs.so.1 is missing"));
}

TEST_F(MeasureBaselineTest, WrongBytesAreNoBaseline) {
  correct = false;
  EXPECT_THAT(problem(), HasSubstr("write of host memory failed"));
}

}  // namespace
}  // namespace vfpass::verify
