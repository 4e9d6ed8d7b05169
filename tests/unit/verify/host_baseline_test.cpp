#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sound_inventory.hpp"
#include "unit/values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/verify/host_baseline.hpp"

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

Figure figure(const std::string& subject, const std::string& operation, double speed,
              const std::string& gpu = {}, bool relaxed = false) {
  Figure figure;
  figure.subject = subject;
  figure.operation = operation;
  figure.memory = gpu.empty() ? "host" : "gpu";
  figure.gpu = gpu;
  figure.messageBytes = 65536;
  figure.gigabitsPerSecond = speed;
  figure.relaxedOrdering = relaxed;
  return figure;
}

/// A VF `rail0` with 390 Gb/s in its guest; its PF reached 400 on the host.
class JudgeBaselineTest : public testing::Test {
 protected:
  JudgeBaselineTest() {
    Baseline baseline;
    baseline.time = "2026-11-20T08:00:00Z";
    baseline.host = "host1";
    baseline.machine = "a1";
    baseline.pf = at("0000:03:00.0");
    baseline.guid = "b8ce:f603:00aa:bbcc";
    baseline.firmware = "28.39.2048";
    baseline.figures = {figure("", "write", 400), figure("", "read", 380)};
    subject.entry = "rail0";
    subject.pf = at("0000:03:00.0");
    subject.guid = baseline.guid;
    subject.firmware = baseline.firmware;
    subject.machine = "a1";
    subject.baseline = baseline;
    report.figures = {figure("rail0", "write", 390), figure("rail0", "read", 376)};
  }

  Finding judge() {
    judgeBaselines({subject}, report);
    return report.findings.empty() ? Finding{} : report.findings.back();
  }
  [[nodiscard]] std::vector<std::string> factors() const {
    std::vector<std::string> names;
    for (const auto& factor : report.baselines.at(0).factors) {
      names.push_back(factor.name);
    }
    return names;
  }

  BaselineSubject subject;
  VerifyReport report;
};

TEST_F(JudgeBaselineTest, GuestAsFastAsHostPasses) {
  const Finding finding = judge();
  EXPECT_EQ(finding.key, "baseline");
  EXPECT_EQ(finding.subject, "rail0");
  EXPECT_EQ(finding.outcome, Outcome::passed);
  EXPECT_EQ(finding.seen, "host write 390 of 400 Gb/s, 98 %; host read 376 of 380 Gb/s, 99 %");
  ASSERT_THAT(report.baselines, SizeIs(1));
  EXPECT_THAT(report.baselines[0].ratios, SizeIs(2));
  EXPECT_THAT(report.baselines[0].factors, IsEmpty());
}

TEST_F(JudgeBaselineTest, BaselineOfCardThatWasOrMayHaveBeenInUseProvesNothing) {
  subject.baseline->users = {"0000:03:00.2: qemu-system-x86 (pid 4711)"};
  Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::waived);
  EXPECT_THAT(finding.seen, HasSubstr("98 %"));
  EXPECT_THAT(finding.seen, HasSubstr("the card was in use"));
  EXPECT_THAT(finding.remedy, HasSubstr("`vfpass verify --baseline 0000:03:00.0`"));
  EXPECT_THAT(report.baselines, SizeIs(1)) << "the shares are still shown";
  subject.baseline->users.clear();
  subject.baseline->unseenUsers = {"cannot read /proc"};
  finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::waived);
  EXPECT_THAT(finding.seen, HasSubstr("not known whether the card was in use"));
  report.figures[0].gigabitsPerSecond = 100;
  EXPECT_EQ(judge().outcome, Outcome::warning) << "slower than even a slowed host";
}

TEST_F(JudgeBaselineTest, WithoutBaselineIsWaivedWithCommand) {
  subject.baseline.reset();
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::waived);
  EXPECT_THAT(finding.remedy, HasSubstr("`vfpass verify --baseline 0000:03:00.0`"));
  EXPECT_THAT(report.baselines, IsEmpty());
}

TEST_F(JudgeBaselineTest, OtherFirmwareSlotCardOrHostIsNotCompared) {
  const auto expectWaived = [&](const char* reason) {
    const Finding finding = judge();
    EXPECT_EQ(finding.outcome, Outcome::waived) << reason;
    EXPECT_THAT(finding.seen, HasSubstr(reason));
    EXPECT_THAT(report.baselines, IsEmpty()) << reason;
  };
  const Baseline sound = *subject.baseline;
  subject.firmware = "28.43.1000";
  expectWaived("the firmware has changed from 28.39.2048 to 28.43.1000");
  subject.firmware = "";
  expectWaived("the firmware has changed");
  subject.firmware = sound.firmware;
  subject.baseline->pf = at("0000:81:00.0");
  expectWaived("moved from slot 0000:81:00.0 to 0000:03:00.0");
  subject.baseline = sound;
  subject.baseline->guid = "b8ce:f603:00dd:eeff";
  expectWaived("another card");
  subject.baseline = sound;
  subject.guid = "";
  subject.baseline->guid = "";
  expectWaived("its identity is unknown");
  subject.baseline = sound;
  subject.machine = "b2";
  expectWaived("another host, host1");
}

TEST_F(JudgeBaselineTest, VfThatMovedNoDataHasNoFinding) {
  report.figures.clear();
  judge();
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST_F(JudgeBaselineTest, MessagesOfAnotherSizeAreNotCompared) {
  for (Figure& each : report.figures) {
    each.messageBytes = 4096;
  }
  EXPECT_EQ(judge().outcome, Outcome::waived);
}

TEST_F(JudgeBaselineTest, SlowGuestIsWarningThatRanksWhatDiffers) {
  report.figures[0].gigabitsPerSecond = 200;
  report.concurrentVfs = 2;
  report.findings = {
      {"pcie-packets", "rail0", Outcome::warning, "", "MaxReadReq 128", "setpci"},
      {"numa-placement", "", Outcome::warning, "", "vCPUs not restricted to a node", "pin"},
      {"pcie-link", "rail0", Outcome::warning, "", "Gen5 x4 of Gen5 x16", "reseat"},
      {"rdma-errors", "rail1", Outcome::warning, "", "another VF's", ""},
      {"mtu", "rail0", Outcome::passed, "", "9000", ""}};
  subject.domain = {{"vcpu-placement", "not pinned", "pin"}, {"hugepages", "none", "plan"}};
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.seen, HasSubstr("host write 200 of 400 Gb/s, 50 %"));
  EXPECT_THAT(finding.seen, HasSubstr("different from the host: pcie-link, numa-placement, "
                                      "hugepages, pcie-packets, concurrent-vfs"));
  EXPECT_EQ(finding.remedy.substr(0, 12), "reseat; then");
  EXPECT_THAT(factors(), ElementsAre("pcie-link", "numa-placement", "hugepages", "pcie-packets",
                                     "concurrent-vfs"))
      << "numa-placement covers the pinning";
}

TEST_F(JudgeBaselineTest, UnpinnedVcpusCountOnHostsWithOneNode) {
  report.figures[0].gigabitsPerSecond = 200;
  subject.domain = {{"vcpu-placement", "not pinned", "pin"}};
  judge();
  EXPECT_THAT(factors(), ElementsAre("vcpu-placement"));
}

TEST_F(JudgeBaselineTest, SettingsOfHostThatChangedSinceAreNamed) {
  report.figures[0].gigabitsPerSecond = 200;
  subject.baseline->settings = {{"cpufreq-governor", "performance"},
                                {"deepest-c-state", "C1"},
                                {"kernel", "6.12.1"},
                                {"pcie-link", "Gen5 x16"},
                                {"iommu-domain", "DMA"}};
  subject.settings = {{"cpufreq-governor", "powersave"},
                      {"deepest-c-state", "C6"},
                      {"kernel", "6.12.1"},
                      {"pcie-link", "Gen5 x4"}};
  judge();
  EXPECT_THAT(factors(), ElementsAre("pcie-link", "cpufreq-governor", "deepest-c-state"))
      << "iommu-domain is unknown now";
  EXPECT_EQ(report.baselines[0].factors[0].seen, "Gen5 x4, during the baseline Gen5 x16");
  EXPECT_EQ(report.baselines[0].factors[1].remedy,
            "on the host: cpupower frequency-set --governor performance");
}

TEST_F(JudgeBaselineTest, EverySettingOfTheHostIsAFactorWithARemedy) {
  report.figures[0].gigabitsPerSecond = 200;
  const std::vector<std::string> names{
      "max-read-request", "max-payload",     "iommu-domain",          "cpufreq-governor",
      "cpuidle-governor", "deepest-c-state", "transparent-hugepages", "kernel"};
  for (const std::string& name : names) {
    subject.baseline->settings[name] = "before";
    subject.settings[name] = "now";
  }
  judge();
  EXPECT_EQ(factors(), names);
  for (const BaselineFactor& each : report.baselines[0].factors) {
    EXPECT_EQ(each.seen, "now, during the baseline before") << each.name;
    EXPECT_FALSE(each.remedy.empty()) << each.name;
  }
  EXPECT_THAT(report.baselines[0].factors[6].remedy, HasSubstr("transparent_hugepage/enabled"));
  EXPECT_THAT(report.baselines[0].factors[7].remedy, HasSubstr("--baseline 0000:03:00.0"));
}

TEST_F(JudgeBaselineTest, FindingsOfTheVfAndOfTheWholeVmAreFactorsInThisOrder) {
  subject.functions = {{"gpu0", "0000:05:00.0"}};
  subject.baseline->figures.push_back(figure("", "write", 390, "0000:05:00.0"));
  report.figures.push_back(figure("rail0", "write", 100, "gpu0"));
  subject.hostChecks = [] {
    return std::vector<Finding>{
        {"ats", "0000:03:00.0", Outcome::failed, "", "disabled", "mstconfig"},
        {"acs", "0000:05:00.0", Outcome::passed, "", "as it should be", ""}};
  };
  for (const char* key : {"nccl-topology", "rdma-errors", "mtu", "gpu-beside-host", "gpu-distance",
                          "link", "pcie-link"}) {
    const bool ofVm = key == std::string("nccl-topology");
    report.findings.push_back({key, ofVm ? "" : "rail0", Outcome::warning, "", key, "see it"});
  }
  judge();
  EXPECT_THAT(factors(), ElementsAre("pcie-link", "ats", "gpu-distance", "gpu-beside-host", "mtu",
                                     "rdma-errors", "nccl-topology"));
}

TEST_F(JudgeBaselineTest, VfThatIsSlowOnlyBesideOthersNamesThem) {
  report.concurrentVfs = 4;
  report.together["rail0"] = {figure("rail0", "write", 200), figure("rail0", "read", 376)};
  Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(factors(), ElementsAre("concurrent-vfs"));
  EXPECT_THAT(finding.seen, HasSubstr("host write 390 of 400 Gb/s, 98 %"));
  EXPECT_EQ(report.baselines[0].factors[0].seen,
            "alone as fast as the host; while up to 4 VFs moved data: "
            "host write 200 of 400 Gb/s, 50 %");
  report.baselines.clear();
  report.together["rail0"][0].gigabitsPerSecond = 380;
  EXPECT_EQ(judge().outcome, Outcome::passed);
  report.baselines.clear();
  report.figures[0].gigabitsPerSecond = 200;
  EXPECT_EQ(judge().outcome, Outcome::warning);
  EXPECT_THAT(factors(), IsEmpty()) << "it is slow alone as well";
}

TEST_F(JudgeBaselineTest, OnlyComparableFiguresAreBelowTheBaseline) {
  EXPECT_FALSE(isBelowBaseline(subject, report.figures));
  report.figures[0].gigabitsPerSecond = 100;
  EXPECT_TRUE(isBelowBaseline(subject, report.figures));
  subject.firmware = "28.43.1000";
  EXPECT_FALSE(isBelowBaseline(subject, report.figures));
  subject.baseline.reset();
  EXPECT_FALSE(isBelowBaseline(subject, report.figures));
}

TEST_F(JudgeBaselineTest, PathToGpuCountsForGpuMemoryOnly) {
  subject.functions = {{"gpu0", "0000:05:00.0"}};
  subject.baseline->figures.push_back(figure("", "write", 390, "0000:05:00.0"));
  subject.hostChecks = [] {
    return std::vector<Finding>{
        {"acs", "0000:05:00.0 with mlx5_0", Outcome::failed, "", "0011101", "config_acs"},
        {"vf-ats", "0000:03:00.2", Outcome::failed, "", "ATS is off", "dmesg"}};
  };
  report.figures.push_back(figure("rail0", "write", 380, "gpu0"));
  report.figures[0].gigabitsPerSecond = 100;
  judge();
  EXPECT_THAT(factors(), IsEmpty()) << "host memory is low, the path to the GPU is not";
  report.baselines.clear();
  report.figures[2].gigabitsPerSecond = 100;
  EXPECT_THAT(judge().seen, HasSubstr("gpu0 write 100 of 390 Gb/s, 26 %"));
  EXPECT_THAT(factors(), ElementsAre("vf-ats", "acs"));
}

TEST_F(JudgeBaselineTest, DoctorRunsOnlyIfFigureIsLow) {
  bool asked = false;
  subject.hostChecks = [&] {
    asked = true;
    return std::vector<Finding>{};
  };
  judge();
  EXPECT_FALSE(asked);
  report.figures[0].gigabitsPerSecond = 100;
  judge();
  EXPECT_TRUE(asked);
}

TEST_F(JudgeBaselineTest, SaysThatGpuMemoryHasNoBaseline) {
  report.figures.push_back(figure("rail0", "write", 100, "gpu0"));
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::passed);
  EXPECT_THAT(finding.seen, HasSubstr("GPU memory not compared"));
}

TEST_F(JudgeBaselineTest, RelaxedOrderingWithoutEffectIsNamed) {
  subject.baseline->figures = {figure("", "write", 200), figure("", "write", 400, "", true)};
  report.figures = {figure("rail0", "write", 198), figure("rail0", "write", 199, "", true)};
  judge();
  EXPECT_THAT(factors(), ElementsAre("relaxed-ordering"));
  report.baselines.clear();
  report.figures.pop_back();
  judge();
  EXPECT_THAT(factors(), ElementsAre("relaxed-ordering")) << "--relaxed-ordering off";
  EXPECT_THAT(report.baselines[0].factors[0].seen, HasSubstr("not measured with it"));
  report.baselines.clear();
  report.figures.push_back(figure("rail0", "write", 395, "", true));
  EXPECT_EQ(judge().outcome, Outcome::passed) << "the better of both counts";
}

TEST_F(JudgeBaselineTest, LowFigureWithoutKnownFactorSaysSo) {
  report.figures[0].gigabitsPerSecond = 100;
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.remedy, HasSubstr("no known factor differs"));
}

TEST(ChooseBaselineTest, PrefersCardOverSlot) {
  Baseline moved;
  moved.pf = at("0000:81:00.0");
  moved.guid = "b8ce:f603:00aa:bbcc";
  Baseline inSlot;
  inSlot.pf = at("0000:03:00.0");
  inSlot.guid = "b8ce:f603:00dd:eeff";
  const std::vector<Baseline> all{inSlot, moved};
  EXPECT_EQ(chooseBaseline(all, at("0000:03:00.0"), "b8ce:f603:00aa:bbcc"), &all[1]);
  EXPECT_EQ(chooseBaseline(all, at("0000:03:00.0"), "b8ce:f603:0011:2233"), &all[0]);
  EXPECT_EQ(chooseBaseline(all, at("0000:03:00.0"), ""), &all[0]);
  EXPECT_EQ(chooseBaseline(all, at("0000:04:00.0"), ""), nullptr);
}

}  // namespace

}  // namespace vfpass::verify
