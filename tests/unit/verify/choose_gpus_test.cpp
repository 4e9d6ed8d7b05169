#include "choose_gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sound_inventory.hpp"

namespace vfpass::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Lease vf(const std::string& entry) {
  Lease lease;
  lease.entry = entry;
  return lease;
}

LeasedGpu gpu(const std::string& entry, const std::map<std::string, std::string>& distances) {
  LeasedGpu gpu{entry, {}, {}};
  for (const auto& [rail, distance] : distances) {
    gpu.paths[rail].distance = distance;
  }
  return gpu;
}

TEST(AssignGpusTest, GivesEachVfItsNearestGpuOnHost) {
  const auto assigned =
      assignGpus({vf("rail0"), vf("rail1")}, {gpu("gpu0", {{"rail0", "SYS"}, {"rail1", "PIX"}}),
                                              gpu("gpu1", {{"rail0", "PXB"}, {"rail1", "NODE"}})});
  EXPECT_THAT(assigned.at("rail0"), ElementsAre(1));
  EXPECT_THAT(assigned.at("rail1"), ElementsAre(0));
}

TEST(AssignGpusTest, SpreadsGpusOfEqualDistance) {
  const std::map<std::string, std::string> tie{
      {"rail0", "PHB"}, {"rail1", "PHB"}, {"rail2", "PHB"}};
  const auto assigned = assignGpus({vf("rail0"), vf("rail1"), vf("rail2")},
                                   {gpu("gpu0", tie), gpu("gpu1", tie), gpu("gpu2", tie)});
  EXPECT_THAT(assigned.at("rail0"), ElementsAre(0));
  EXPECT_THAT(assigned.at("rail1"), ElementsAre(1));
  EXPECT_THAT(assigned.at("rail2"), ElementsAre(2));
}

TEST(AssignGpusTest, LeavesNoGpuWithoutVf) {
  const std::map<std::string, std::string> tie{{"rail0", "SYS"}, {"rail1", "SYS"}};
  std::vector<LeasedGpu> eight;
  for (int i = 0; i < 8; ++i) {
    eight.push_back(gpu("gpu" + std::to_string(i), tie));
  }
  const auto assigned = assignGpus({vf("rail0"), vf("rail1")}, eight);
  EXPECT_THAT(assigned.at("rail0"), SizeIs(4));
  EXPECT_THAT(assigned.at("rail1"), SizeIs(4));
  const auto second =
      assignGpus({vf("rail0"), vf("rail1")}, {gpu("gpu0", {{"rail0", "PIX"}, {"rail1", "PIX"}}),
                                              gpu("gpu1", {{"rail0", "SYS"}, {"rail1", "PHB"}})});
  EXPECT_THAT(second.at("rail1"), ElementsAre(0, 1)) << "a GPU that no VF prefers";
}

// The XML's bus numbers are indices of controllers; the guest's are 0, 2 and 5.
GuestView mirroredGuest(const std::string& cudaIndex = "1") {
  return readGuestView(nlohmann::json::parse(R"({
    "pci": [
      {"address": "0000:00:02.0", "path": "/sys/devices/pci0000:00/0000:00:02.0"},
      {"address": "0000:05:00.0",
       "path": "/sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0"},
      {"address": "0000:02:00.0",
       "path": "/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0"}],
    "gpus": {"libcuda": {"found": true}, "devices": [
      {"index": 0, "name": "NVIDIA H200", "pci": "00000000:02:00.0", "dma_buf_supported": 1},
      {"index": )" + cudaIndex + R"(, "name": "NVIDIA H200", "pci": "00000000:05:00.0",
       "dma_buf_supported": 1}]},
    "distances": [{"nic": "0000:01:00.0", "gpu": "0000:05:00.0", "distance": "PHB"}]})"));
}

LeasedGpu behindSlot3() {
  return {"gpu1",
          {*parsePciAddress("0000:00:03.0"), *parsePciAddress("0000:11:00.0")},
          {{"rail0", {{}, true, "NODE", "PHB"}}}};
}

TEST(FindLeasedGpuTest, FindsGpuByItsPlaceInGuestTree) {
  const auto found = findLeasedGpu(mirroredGuest(), behindSlot3(), "rail0", "0000:01:00.0");
  ASSERT_TRUE(found.gpu);
  EXPECT_EQ(toString(found.gpu->address), "0000:05:00.0");
  EXPECT_EQ(found.gpu->index, 1);
  EXPECT_EQ(found.gpu->entry, "gpu1");
  EXPECT_EQ(found.gpu->distance, "PHB");
  ASSERT_TRUE(found.gpu->path);
  EXPECT_EQ(found.gpu->path->distance, "NODE");
}

TEST(FindLeasedGpuTest, ReportsGpuMissingInGuestOrCuda) {
  const auto hidden = findLeasedGpu(mirroredGuest("null"), behindSlot3(), "rail0", "");
  ASSERT_FALSE(hidden.gpu);
  EXPECT_EQ(hidden.problem.outcome, Outcome::failed);
  EXPECT_EQ(hidden.problem.subject, "gpu1");
  EXPECT_THAT(hidden.problem.seen, HasSubstr("CUDA does not have GPU 0000:05:00.0"));
  LeasedGpu elsewhere = behindSlot3();
  elsewhere.guestPath.front() = *parsePciAddress("0000:00:07.0");
  EXPECT_EQ(findLeasedGpu(mirroredGuest(), elsewhere, "rail0", "").problem.outcome,
            Outcome::failed);
  elsewhere.guestPath.clear();
  EXPECT_EQ(findLeasedGpu(mirroredGuest(), elsewhere, "rail0", "").problem.outcome,
            Outcome::notObservable);
}

TEST(ViewOfLeasedTest, HasOnlyWhatVfpassGave) {
  GuestView view = mirroredGuest();
  view.gpus.push_back(view.gpus[0]);
  view.gpus.back().pci = "0000:09:00.0";
  view.rdmaDevices.resize(2);
  const auto own = viewOfLeased(view, {}, {behindSlot3()});
  ASSERT_THAT(own.gpus, SizeIs(1));
  EXPECT_EQ(parsePciAddress(own.gpus[0].pci), parsePciAddress("0000:05:00.0"));
  EXPECT_THAT(own.rdmaDevices, SizeIs(2)) << "no VF was found";
  EXPECT_THAT(viewOfLeased(view, {}, {}).gpus, SizeIs(view.gpus.size())) << "--gpu";
  LeasedGpu unknown = behindSlot3();
  unknown.guestPath.clear();
  EXPECT_THAT(viewOfLeased(view, {}, {unknown}).gpus, SizeIs(0));
}

TEST(ViewOfLeasedTest, HasRdmaDeviceOfVf) {
  auto inventory = nlohmann::json::parse(soundInventory);
  auto other = inventory["rdma"]["devices"][0];
  other["name"] = "mlx5_9";
  other["pci"] = "0000:09:00.0";
  inventory["rdma"]["devices"].push_back(other);
  Lease rail0 = vf("rail0");
  vfOf(rail0).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
  const auto own = viewOfLeased(readGuestView(inventory), {rail0}, {});
  ASSERT_THAT(own.rdmaDevices, SizeIs(1));
  EXPECT_EQ(own.rdmaDevices[0].name, "mlx5_0");
}

TEST(ViewOfLeasedTest, FindsVfThatIsDown) {
  auto inventory = nlohmann::json::parse(soundInventory);
  auto other = inventory["rdma"]["devices"][0];
  other["name"] = "mlx5_9";
  other["pci"] = "0000:09:00.0";
  inventory["rdma"]["devices"].push_back(other);
  inventory["netdevs"][0]["state"] = "down";
  Lease rail0 = vf("rail0");
  vfOf(rail0).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
  const auto down = viewOfLeased(readGuestView(inventory), {rail0}, {});
  ASSERT_THAT(down.rdmaDevices, SizeIs(1));
  EXPECT_EQ(down.rdmaDevices[0].name, "mlx5_0");
  inventory["rdma"]["devices"].erase(0);
  EXPECT_THAT(viewOfLeased(readGuestView(inventory), {rail0}, {}).rdmaDevices, SizeIs(0))
      << "a VF without RDMA device";
  inventory["rdma"]["devices"][0]["pci"] = "";
  inventory["rdma"]["devices"][0]["parent"] = "eth1";
  EXPECT_THAT(viewOfLeased(readGuestView(inventory), {rail0}, {}).rdmaDevices, SizeIs(1))
      << "SoftRoCE";
}

TEST(SkipUnusableGpusTest, GpuThatIsMissingHasItsReason) {
  LeasedGpu elsewhere = behindSlot3();
  elsewhere.entry = "gpu2";
  elsewhere.guestPath.front() = *parsePciAddress("0000:00:07.0");
  GpuCoverage coverage({behindSlot3(), elsewhere});
  skipUnusableGpus(mirroredGuest(), {0, 1}, coverage);
  const auto findings = coverage.findings();
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].outcome, Outcome::notObservable);
  EXPECT_THAT(findings[0].seen, HasSubstr("cannot use GPU memory"));
  EXPECT_EQ(findings[1].outcome, Outcome::failed);
  EXPECT_THAT(findings[1].seen, HasSubstr("no device at its place"));
}

TEST(GpuCoverageTest, UntestedGpuIsNotObservable) {
  GpuCoverage coverage({gpu("gpu0", {}), gpu("gpu1", {}), gpu("gpu2", {}), gpu("gpu3", {})});
  coverage.passed("gpu0", "rail0");
  coverage.failed("gpu1", "rail1");
  coverage.skipped("gpu2", "rail2 failed before");
  const auto findings = coverage.findings();
  ASSERT_THAT(findings, SizeIs(4));
  EXPECT_EQ(findings[0].outcome, Outcome::passed);
  EXPECT_EQ(findings[1].outcome, Outcome::failed);
  EXPECT_EQ(findings[2].outcome, Outcome::notObservable);
  EXPECT_EQ(findings[2].seen, "not tested: rail2 failed before");
  EXPECT_EQ(findings[3].outcome, Outcome::notObservable);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.remedy.empty(), finding.outcome == Outcome::passed);
  }
}

}  // namespace
}  // namespace vfpass::verify
