#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

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
