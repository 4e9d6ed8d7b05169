#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "judge_guest.hpp"
#include "unit/values.hpp"

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json bar(int number, std::uint64_t bytes, bool assigned = true) {
  return {{"number", number}, {"bytes", bytes}, {"assigned", assigned}};
}

// A list of one value; in braces alone it would be the value itself.
Json one(const Json& value) { return Json::array({value}); }

Json gpu(const Json& bars, std::uint64_t memory = 80 * gibibyte) {
  return {{"index", 0},
          {"name", "NVIDIA H100"},
          {"pci", "0000:05:00.0"},
          {"bars", bars},
          {"memory_bytes", memory},
          {"dma_buf_supported", 1},
          {"gpudirect_rdma_supported", 1}};
}

// GPU 0000:05:00.0 is behind port 0000:00:02.0, and 0000:06:00.0 behind 0000:00:03.0.
GuestView with(const Json& gpus) {
  return readGuestView({{"pci",
                         {{{"address", "0000:05:00.0"},
                           {"path", "/sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0"}},
                          {{"address", "0000:06:00.0"},
                           {"path", "/sys/devices/pci0000:00/0000:00:03.0/0000:06:00.0"}}}},
                        {"gpus", {{"libcuda", {{"found", true}}}, {"devices", gpus}}}});
}

LeasedGpu leasedBehind(const char* port) {
  return {"gpu0", {*parsePciAddress(port), *parsePciAddress("0000:09:00.0")}, {}};
}

const std::vector<LeasedGpu> leased{leasedBehind("0000:00:02.0")};

Finding judgedBars(const Json& bars, std::uint64_t memory = 80 * gibibyte) {
  return judgeGpuBars(with(Json::array({gpu(bars, memory)})), leased).value_or(Finding{});
}

TEST(JudgeGpuBarTest, PassesWhenBarHasAddressAndCoversMemory) {
  const Finding hopper = judgedBars({bar(0, 1 << 24), bar(2, 128 * gibibyte), bar(4, 1 << 25)});
  EXPECT_EQ(hopper.key, "gpu-bar");
  EXPECT_EQ(hopper.outcome, Outcome::passed);
  EXPECT_EQ(hopper.seen, "0000:05:00.0 of 128 GiB");
  EXPECT_EQ(judgedBars({bar(0, 1 << 24), bar(1, 128 * gibibyte)}).outcome, Outcome::passed)
      << "older";
}

TEST(JudgeGpuBarTest, BarWithoutAddressFails) {
  for (const std::uint64_t size : {std::uint64_t{0}, 128 * gibibyte}) {
    const Finding found = judgedBars({bar(0, 1 << 24), bar(2, size, false)});
    EXPECT_EQ(found.outcome, Outcome::failed) << size;
    EXPECT_THAT(found.seen, HasSubstr("0000:05:00.0: BAR1"));
    EXPECT_THAT(found.seen, HasSubstr("has no address"));
    EXPECT_THAT(found.remedy, HasSubstr("firmware-window"));
  }
}

// CUDA then fails as well, and the cause comes first.
TEST(JudgeGpuBarTest, ComesBeforeDriver) {
  GuestView view = with(one(gpu(one(bar(2, 0, false)))));
  view.cudaStatus = 3;
  const auto findings = judgeGpus(view, true, {}, {}, leased);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].key, "gpu-bar");
  EXPECT_EQ(findings[1].key, "gpu-driver");
  EXPECT_EQ(judgeGpus(with(one(gpu(one(bar(2, 128 * gibibyte))))), true).back().outcome,
            Outcome::passed);
}

TEST(JudgeGpuBarTest, SmallBarIsWarning) {
  const Finding found = judgedBars({bar(0, 1 << 24), bar(1, 1 << 28)}, 15 * gibibyte);
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_EQ(found.seen,
            "0000:05:00.0: BAR1 of 256 MiB for 15 GiB of memory: RDMA can register no more at one "
            "time");
  EXPECT_THAT(found.remedy, HasSubstr("Resizable BAR"));
}

TEST(JudgeGpuBarTest, MemoryOfSuperchipIsInLaterBar) {
  EXPECT_EQ(judgedBars({bar(0, 1 << 24), bar(2, gibibyte), bar(4, 128 * gibibyte)}).outcome,
            Outcome::passed);
}

TEST(JudgeGpuBarTest, OneOfSeveralGpusFails) {
  Json other = gpu(one(bar(2, 0, false)));
  other["pci"] = "0000:06:00.0";
  const auto found = judgeGpuBars(with({gpu(one(bar(2, 128 * gibibyte))), other}),
                                  {leased[0], leasedBehind("0000:00:03.0")});
  EXPECT_EQ(found->outcome, Outcome::failed);
  EXPECT_THAT(found->seen, testing::Not(HasSubstr("0000:05:00.0")));
}

// Such as a hostdev that the administrator has added, or a vGPU.
TEST(JudgeGpuBarTest, GpuThatVfpassDidNotLeaseIsNotJudged) {
  Json other = gpu(one(bar(2, 0, false)));
  other["pci"] = "00000000:06:00.0";
  const GuestView view = with({gpu(one(bar(2, 128 * gibibyte))), other});
  EXPECT_EQ(judgeGpuBars(view, leased)->outcome, Outcome::passed);
  EXPECT_EQ(judgeGpuBars(view, leased)->seen, "0000:05:00.0 of 128 GiB");
  const auto none = judgeGpuBars(view, {});
  EXPECT_EQ(none->outcome, Outcome::waived);
  EXPECT_THAT(none->seen, HasSubstr("no GPU of the guest is known as leased"));
}

TEST(JudgeGpuBarTest, LeasedGpuThatIsNotFoundHasNotPassed) {
  const GuestView view = with(one(gpu(one(bar(2, 128 * gibibyte)))));
  LeasedGpu unknown = leased[0];
  unknown.guestPath.clear();
  unknown.entry = "gpu1";
  for (const auto& gpus :
       {std::vector{leased[0], unknown}, std::vector{leasedBehind("0000:00:07.0")}}) {
    const auto found = judgeGpuBars(view, gpus);
    EXPECT_EQ(found->outcome, Outcome::waived);
    EXPECT_THAT(found->seen, HasSubstr("not found in the guest: " + gpus.back().entry));
  }
}

TEST(JudgeGpuBarTest, UnknownHasNotPassed) {
  EXPECT_FALSE(judgeGpuBars(with(one(gpu(Json::array()))), leased)) << "an older probe";
  EXPECT_FALSE(judgeGpuBars({}, leased));
  EXPECT_EQ(judgedBars(one(bar(0, 1 << 24))).outcome, Outcome::waived) << "an integrated GPU";
  for (const Json& odd : {bar(7, 1), bar(-1, 1), Json("text"), Json({{"number", 1}})}) {
    EXPECT_FALSE(judgeGpuBars(with(one(gpu(one(odd)))), leased)) << odd;
  }
  EXPECT_TRUE(with(one(gpu(Json::array_t(99, bar(2, 1))))).gpus[0].bars.size() == 6);
}

using testing::Not;

constexpr const char* openModules =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build";
constexpr const char* proprietary =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue";

/// A guest with the open modules, in which DMA-BUF works and nvidia_peermem is missing.
Json sound() {
  return {
      {"kernel", "6.8.0-51-generic"},
      {"rdma",
       {{"devices", {{{"name", "mlx5_0"}, {"dma_buf", {{"supported", true}, {"detail", ""}}}}}}}},
      {"gpus",
       {{"libcuda", {{"found", true}, {"cuda_version", 12040}}},
        {"driver_version", "550.54.15"},
        {"driver", openModules},
        {"nvidia_peermem", {{"loaded", false}, {"loadable", true}, {"interface", false}}},
        {"devices", {{{"index", 0}, {"pci", "0000:05:00.0"}, {"dma_buf_supported", 1}}}}}}};
}

Json without(Json guest) {
  guest["gpus"]["devices"][0]["dma_buf_supported"] = 0;
  return guest;
}

Finding judgedModules(const Json& guest) {
  return judgeGpuModules(readGuestView(guest), "`vfpass guest-setup train0`").value_or(Finding{});
}

TEST(JudgeGpuModulesTest, SaysWhichPathWorksAndWhyNotTheOther) {
  const Finding found = judgedModules(sound());
  EXPECT_EQ(found.key, "gpu-modules");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.seen,
            "open modules 550.54.15, CUDA 12.4, Linux 6.8.0-51-generic; DMA-BUF: works; "
            "nvidia_peermem: no: the kernel lacks ib_register_peer_memory_client, so it would not "
            "load (Invalid argument)");
}

TEST(JudgeGpuModulesTest, ProprietaryModulesNeedPeerMemory) {
  Json guest = without(sound());
  guest["gpus"]["driver"] = proprietary;
  const Finding neither = judgedModules(guest);
  EXPECT_EQ(neither.outcome, Outcome::warning);
  EXPECT_THAT(neither.seen, HasSubstr("DMA-BUF: no: the proprietary modules do not export it"));
  EXPECT_THAT(neither.remedy, HasSubstr("open kernel modules"));
  EXPECT_THAT(neither.remedy, HasSubstr("MLNX_OFED"));
  EXPECT_THAT(neither.remedy, Not(HasSubstr("modprobe"))) << "which would fail";
  EXPECT_EQ(judgeGpus(readGuestView(guest), true).back().outcome, Outcome::failed);
  EXPECT_THAT(judgeGpus(readGuestView(guest), true).back().remedy, Not(HasSubstr("modprobe")));
  guest["gpus"]["nvidia_peermem"] = {{"loaded", false}, {"loadable", true}, {"interface", true}};
  EXPECT_THAT(judgedModules(guest).remedy,
              HasSubstr("modprobe nvidia_peermem (`vfpass guest-setup train0` makes"));
  guest["gpus"]["nvidia_peermem"]["loaded"] = true;
  EXPECT_EQ(judgedModules(guest).outcome, Outcome::passed);
}

TEST(JudgeGpuModulesTest, NamesWhatDmaBufNeeds) {
  Json guest = without(sound());
  EXPECT_THAT(judgedModules(guest).seen, HasSubstr("does not report support for any GPU"));
  guest["kernel"] = "5.4.0-200-generic";
  EXPECT_THAT(judgedModules(guest).seen, HasSubstr("needs Linux 5.12"));
  guest["gpus"]["libcuda"]["cuda_version"] = 11060;
  EXPECT_THAT(judgedModules(guest).seen, HasSubstr("needs CUDA 11.7"));
  guest["gpus"]["driver_version"] = "510.47";
  EXPECT_THAT(judgedModules(guest).seen, HasSubstr("needs driver 515"));
}

TEST(JudgeGpuModulesTest, RdmaDeviceHasToRegisterDmaBuf) {
  Json guest = sound();
  guest["rdma"]["devices"][0]["dma_buf"] = {{"supported", false}, {"detail", "too old"}};
  const Finding found = judgedModules(guest);
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_THAT(found.seen, HasSubstr("mlx5_0 does not register it: too old"));
  guest["rdma"]["devices"][0]["parent"] = "eth0";
  EXPECT_EQ(judgedModules(guest).outcome, Outcome::passed) << "a software device";
}

TEST(JudgeGpuModulesTest, UnknownAndHostileValues) {
  EXPECT_FALSE(judgeGpuModules({}, "")) << "no driver, or an older probe";
  Json guest = without(sound());
  guest["kernel"] = std::string(100000, '9');
  guest["gpus"]["driver_version"] = std::string(100000, '.');
  guest["gpus"]["libcuda"]["cuda_version"] = -1;
  guest["gpus"]["nvidia_peermem"]["interface"] = "yes";
  const Finding found = judgedModules(guest);
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_LT(found.seen.size(), 500U);
  EXPECT_THAT(found.seen, HasSubstr("CUDA unknown"));
  EXPECT_THAT(found.seen, HasSubstr("nvidia_peermem: no: not loaded"));
}

}  // namespace

}  // namespace vfpass::verify
