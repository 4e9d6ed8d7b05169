#include "vfpass/verify/verify_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "fake/local_guest.hpp"
#include "sound_inventory.hpp"

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

// The real probe with the fake libcuda and libnccl, except for its inventory. `settings` are shell
// variables of the fakes.
const std::string ncclProbe = R"(
here=${0%/*}
case $1 in inventory) cat "$here/inventory"; exit;; esac
export LD_LIBRARY_PATH=)" VFPASS_BINARY_DIR R"(/tests/fake/cuda FAKE_CUDA_CONTEXT=0
export FAKE_CUDA_GPUS="0000:05:00.0 0000:06:00.0 0000:07:00.0"
. "$here/settings"
exec )" VFPASS_BINARY_DIR R"(/libexec/vfpass-probe "$@"
)";

const std::string rdmaLog = R"(
case " $* " in *' --first-rank 0 '*) one=0;; *' --first-rank 1 '*) one=1;; *) one=2;; esac
other=$((one == 0))
export FAKE_NCCL_LOG="x NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE
x NCCL INFO Channel 00/0 : $one[0] -> $other[0] [send] via NET/IB/0/GDRDMA
"
)";

class VerifyNcclTest : public testing::Test {
 protected:
  VerifyNcclTest() {
    plan.folder = guests.folder;
    plan.probeTimeout = std::chrono::seconds(20);
    test.sizes = {65536};
    probe = guests.addProgram("vfpass-probe-1", ncclProbe);
    settings(rdmaLog);
    Json inventory = Json::parse(soundInventory);
    inventory["gpus"] = Json::parse(R"({"libcuda": {"found": true}, "devices": [
      {"index": 0, "name": "NVIDIA H200", "pci": "00000000:05:00.0", "dma_buf_supported": 1},
      {"index": 1, "name": "NVIDIA H200", "pci": "00000000:06:00.0", "dma_buf_supported": 1},
      {"index": 2, "name": "NVIDIA H200", "pci": "00000000:07:00.0", "dma_buf_supported": 1}]})");
    inventory["pci"] = Json::parse(
        R"([{"address": "0000:05:00.0", "path": "/sys/devices/pci0000:05/0000:05:00.0"},
            {"address": "0000:06:00.0", "path": "/sys/devices/pci0000:06/0000:06:00.0"},
            {"address": "0000:07:00.0", "path": "/sys/devices/pci0000:07/0000:07:00.0"}])");
    std::ofstream(guests.folder / "inventory") << inventory << '\n';
  }

  void settings(const std::string& shell) const {
    std::ofstream(guests.folder / "settings") << shell << '\n';
  }

  static LeasedGpu gpu(const char* entry, const char* address) {
    return {entry, {*parsePciAddress(address)}, {}};
  }

  static Lease lease(const char* pf) {
    Lease lease;
    lease.entry = "rail0";
    lease.pf = *parsePciAddress(pf);
    vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
    return lease;
  }

  // Both guests are this machine and share one directory.
  VerifyReport verify() {
    agent::Agent near(guests.hypervisor, Uuid{}, "train0", std::chrono::seconds(60));
    agent::Agent far(guests.hypervisor, Uuid{}, "train1", std::chrono::seconds(60));
    const auto traffic = [this](const Lease&) {
      moved += step;
      return VfTraffic{moved, moved, 0, 0};
    };
    std::vector<PairGuest> parts{
        {near, "train0", {lease("0000:3b:00.0")}, {}, traffic, {}, {gpu("gpu0", "0000:05:00.0")}}};
    parts[0].rdma = nearRdma;
    if (alone) {
      parts[0].gpus.push_back(gpu("gpu1", "0000:06:00.0"));
    } else {
      parts.push_back({far,
                       "train1",
                       {lease(farPf)},
                       farHost,
                       farTraffic ? farTraffic : traffic,
                       {},
                       farGpus,
                       farMachine});
      parts[1].unobserved = unobserved;
      parts[1].unobservedRemedy = unobservedRemedy;
    }
    agent::Agent third(guests.hypervisor, Uuid{}, "train2", std::chrono::seconds(60));
    if (three) {
      parts.push_back({third,
                       "train2",
                       {lease("0000:b0:00.0")},
                       {},
                       traffic,
                       {},
                       {gpu("gpu0", "0000:07:00.0")},
                       "third"});
    }
    std::ifstream stream(probe);
    const std::string content{std::istreambuf_iterator<char>(stream), {}};
    VerifyReport report;
    verifyNccl(parts, {content, "vfpass-probe-1"}, plan, test, {{}, {}, {}}, report);
    return report;
  }

  static std::vector<std::string> results(const VerifyReport& report) {
    std::vector<std::string> found;
    for (const Finding& each : report.findings) {
      found.push_back(each.subject + each.key + " " + std::string(toString(each.outcome)));
    }
    return found;
  }

  static std::string seenAt(const VerifyReport& report, const char* key) {
    const auto found = std::ranges::find(report.findings, key, &Finding::key);
    return found == report.findings.end() ? "" : found->seen;
  }

  // The limit of the all-gather, from the ports of both guests.
  double gatherLimit() {
    const auto report = verify();
    const auto found = std::ranges::find(report.figures, "all-gather", &Figure::operation);
    return found == report.figures.end() ? 0 : found->limit.value_or(0);
  }

  fake::LocalGuest guests;
  std::string probe;
  VerifyPlan plan;
  NcclTest test;
  bool alone = false;
  bool three = false;
  const char* farPf = "0000:af:00.0";
  std::string farMachine = "other";  // train0's is empty: this host
  std::function<HostSide(const Lease&)> farHost;
  ReadTraffic farTraffic;
  ReadTraffic nearRdma;
  std::uint64_t rdmaBytes = 0;
  std::uint64_t rdmaStep = std::uint64_t{1} << 30U;
  std::string unobserved;
  std::string unobservedRemedy;
  std::vector<LeasedGpu> farGpus{gpu("gpu0", "0000:06:00.0")};
  std::uint64_t moved = 0;
  std::uint64_t step = std::uint64_t{1} << 30U;
};

TEST_F(VerifyNcclTest, RanksOfTwoGuestsMeetThroughTheHost) {
  const auto report = verify();
  EXPECT_THAT(results(report),
              testing::ElementsAre("nccl-ranks passed", "nccl-data passed", "nccl-transport passed",
                                   "nccl-traffic passed", "train1:nccl-transport passed",
                                   "train1:nccl-traffic passed", "nccl-bandwidth waived"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"), HasSubstr("rank 1 in train1 with NCCL 2.28.9"));
  EXPECT_EQ(report.figures.size(), 2U);
}

TEST_F(VerifyNcclTest, GpusOfOneGuestAreRanksOfOneProbe) {
  alone = true;
  settings("export FAKE_NCCL_LOG='x NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM'");
  EXPECT_THAT(results(verify()),
              testing::ElementsAre("nccl-ranks passed", "nccl-data passed", "nccl-transport passed",
                                   "nccl-bandwidth waived"));
}

TEST_F(VerifyNcclTest, ThirdGuestHasItsOwnRank) {
  three = true;
  const auto report = verify();
  EXPECT_THAT(seenAt(report, "nccl-ranks"), HasSubstr("rank 2 in train2 with NCCL 2.28.9"));
  EXPECT_THAT(results(report), testing::Contains("train2:nccl-traffic passed"));
}

TEST_F(VerifyNcclTest, WrongDataFailsWithoutBandwidth) {
  settings(rdmaLog + "export FAKE_NCCL_FAULT=wrong FAKE_NCCL_RANK=1");
  const auto report = verify();
  EXPECT_THAT(seenAt(report, "nccl-data"), HasSubstr("train1, all-reduce of 64 KiB: 1 wrong"));
  EXPECT_EQ(seenAt(report, "nccl-bandwidth"), "");
}

TEST_F(VerifyNcclTest, KilledProbeIsNamed) {
  settings(rdmaLog + "export FAKE_NCCL_FAULT=dies FAKE_NCCL_RANK=1");
  plan.probeTimeout = std::chrono::seconds(10);
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("nccl-ranks failed"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"), StartsWith("rank 1 (train1): the probe exited"));
}

TEST_F(VerifyNcclTest, ReportThatIsNoJsonIsAFindingOfItsGuest) {
  settings(rdmaLog + "case \" $* \" in *' --first-rank 1 '*) echo '{broken'; exit;; esac");
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("nccl-ranks failed"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"), StartsWith("rank 1 (train1): invalid reply"));
}

TEST_F(VerifyNcclTest, SignalEndsTheVerification) {
  guests.hypervisor.agent = [this](const std::string& command) {
    if (command.find("--first-rank") != std::string::npos) {
      throw Cancelled(SIGTERM, "interrupted");
    }
    return guests.agent.answer(command);
  };
  EXPECT_THROW(verify(), Cancelled);
}

TEST_F(VerifyNcclTest, RankThatNeverComesIsNamedBeforeTheDeadline) {
  settings(rdmaLog + "case \" $* \" in *' --first-rank 1 '*) kill -9 $$;; esac");
  EXPECT_THAT(seenAt(verify(), "nccl-ranks"), StartsWith("rank 1 (train1): the probe exited"));
}

TEST_F(VerifyNcclTest, RanksThatDoNotMeetEndAtTheDeadline) {
  settings(rdmaLog + "export FAKE_NCCL_FAULT=absent FAKE_NCCL_RANK=1");
  plan.probeTimeout = std::chrono::seconds(10);  // a busy machine takes seconds to start two probes
  EXPECT_THAT(seenAt(verify(), "nccl-ranks"), HasSubstr("did not meet"));
}

// The pair's other checks come first, and their time is missing here.
TEST_F(VerifyNcclTest, ProbesEndWhileTheirReportsCanStillBeRead) {
  plan.probeTimeout = std::chrono::hours(1);
  std::vector<int> deadlines;
  guests.hypervisor.agent = [&](const std::string& command) {
    constexpr std::string_view option = R"("--deadline",")";
    if (const auto at = command.find(option); at != std::string::npos) {
      deadlines.push_back(std::stoi(command.substr(at + option.size())));
    }
    return guests.agent.answer(command);
  };
  verify();
  EXPECT_THAT(deadlines, testing::SizeIs(2));
  EXPECT_THAT(deadlines, testing::Each(testing::AllOf(testing::Gt(10), testing::Le(48))));
}

TEST_F(VerifyNcclTest, LibraryThatIsTooOldIsNotObservable) {
  settings("export FAKE_NCCL_VERSION=21210");
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("nccl-ranks not observable"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"), HasSubstr("2.12.10 is too old"));
}

TEST_F(VerifyNcclTest, ReportedRdmaWithoutTrafficFails) {
  step = 10;
  const auto report = verify();
  const auto found = std::ranges::find(report.findings, "nccl-traffic", &Finding::key);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->outcome, Outcome::failed);
  EXPECT_EQ(found->observer, Observer::host);
}

TEST_F(VerifyNcclTest, RdmaBytesAreThoseOfTheRun) {
  nearRdma = [this](const Lease&) {
    rdmaBytes += rdmaStep;
    return VfTraffic{rdmaBytes, rdmaBytes, 0, 0};
  };
  EXPECT_THAT(results(verify()), testing::Contains("nccl-traffic passed"));
  rdmaStep = 0;  // of 1 GiB before, and packets of any kind move
  EXPECT_THAT(results(verify()), testing::AllOf(testing::Contains("nccl-traffic failed"),
                                                testing::Contains("train1:nccl-traffic passed")));
}

TEST_F(VerifyNcclTest, GuestWithoutLeasedGpuIsNotObservable) {
  farGpus.clear();
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("train1:nccl-ranks not observable"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"), HasSubstr("no GPU is leased to train1"));
}

// Which GPUs are leased is known to its host only.
TEST_F(VerifyNcclTest, HostWithoutVfpassIsNotObservableBeforeAnyRankStarts) {
  farGpus.clear();
  unobserved = "host2: sh: 1: vfpass: not found";
  unobservedRemedy = "make `ssh host2 vfpass observe` work";
  bool started = false;
  guests.hypervisor.agent = [&](const std::string& command) {
    started = started || command.find("--first-rank") != std::string::npos;
    return guests.agent.answer(command);
  };
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("train1:nccl-ranks not observable"));
  EXPECT_EQ(seenAt(report, "nccl-ranks"), unobserved);
  EXPECT_EQ(report.findings.front().remedy, unobservedRemedy);
  EXPECT_FALSE(started);
}

TEST_F(VerifyNcclTest, CountersThatTheOtherHostNoLongerReportsAreNotObservable) {
  farTraffic = [](const Lease&) { return std::optional<VfTraffic>(); };
  const auto report = verify();
  EXPECT_THAT(results(report),
              testing::ElementsAre("nccl-ranks passed", "nccl-data passed", "nccl-transport passed",
                                   "nccl-traffic passed", "train1:nccl-transport passed",
                                   "train1:nccl-traffic not observable", "nccl-bandwidth waived"));
}

TEST_F(VerifyNcclTest, OtherHostThatStopsAnsweringLeavesTheLimitUnknown) {
  plan.minimumShare = 0.9;
  farHost = [](const Lease&) -> HostSide { throw Error("ssh: no reply within 30 s"); };
  EXPECT_THAT(results(verify()),
              testing::AllOf(testing::Contains("nccl-data passed"),
                             testing::Contains("nccl-bandwidth not observable")));
}

TEST_F(VerifyNcclTest, ConnectionToTheOtherHostThatBreaksIsThatOfItsRank) {
  guests.hypervisor.agent = [this, starts = 0](const std::string& command) mutable {
    if (command.find("--first-rank") != std::string::npos && ++starts > 1) {
      throw Error("the connection to host2 was lost");
    }
    return guests.agent.answer(command);
  };
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("nccl-ranks failed"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"),
              testing::AllOf(StartsWith("rank 1 (train1): "), HasSubstr("connection to host2"),
                             testing::Not(HasSubstr("train0"))));
}

TEST_F(VerifyNcclTest, OnlyTheGuestWithAnOldLibraryIsNamed) {
  settings(rdmaLog +
           "case \" $* \" in *' --first-rank 1 '*) export FAKE_NCCL_VERSION=21210;; esac");
  const auto report = verify();
  EXPECT_THAT(results(report), testing::ElementsAre("nccl-ranks not observable"));
  EXPECT_THAT(seenAt(report, "nccl-ranks"),
              testing::AllOf(StartsWith("rank 1 (train1): "), HasSubstr("2.12.10 is too old"),
                             testing::Not(HasSubstr("train0"))));
}

TEST_F(VerifyNcclTest, OfThreeGuestsTheOneWhoseRankDiesIsNamed) {
  three = true;
  settings(rdmaLog + "export FAKE_NCCL_FAULT=dies FAKE_NCCL_RANK=2");
  plan.probeTimeout = std::chrono::seconds(10);
  EXPECT_THAT(seenAt(verify(), "nccl-ranks"), StartsWith("rank 2 (train2): the probe exited"));
}

// The card reads all data from memory and writes it back over one link.
TEST_F(VerifyNcclTest, VfsOfOneCardInTwoGuestsHaveTheLimitOfALoopback) {
  farMachine = "";
  const double apart = gatherLimit();
  EXPECT_GT(apart, 90);
  farPf = "0000:3b:00.0";
  const double together = gatherLimit();
  EXPECT_GT(together, 0);
  EXPECT_LT(together, apart);
  farMachine = "other";
  EXPECT_EQ(gatherLimit(), apart) << "equal addresses on two hosts are two cards";
}

}  // namespace
}  // namespace vfpass::verify
