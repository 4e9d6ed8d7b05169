#include "judge_nccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/values.hpp"

namespace vfpass::verify {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

NcclReport soundReport(std::size_t local, std::size_t ranks) {
  const std::uint64_t values = gibibyte / 4;
  NcclReport report{"2.28.9"};
  report.runs = {{"all-reduce", gibibyte, 20, 170, local * values, 0},
                 {"all-gather", gibibyte, 20, 160, local * (values / ranks * ranks), 0}};
  report.bootstrap = "eth0:10.0.0.1";
  report.devices = {{0, "mlx5_0"}};
  return report;
}

Limit limitOf100Gigabytes() { return {800, 800, 900, "the port after headers"}; }

NcclNic nic() {
  return {"rail0",
          "",
          *parsePciAddress("0000:01:00.0"),
          "mlx5_0",
          limitOf100Gigabytes(),
          MovedBytes{100 * gibibyte, 100 * gibibyte}};
}

/// Two guests with a VF and a GPU each.
NcclOutcome pairOf() {
  NcclOutcome outcome{{}, {gibibyte}};
  for (unsigned rank = 0; rank < 2; ++rank) {
    NcclMember member{rank == 0 ? "train0" : "train1", rank == 0 ? "" : "train1:", rank};
    member.gpus = {"gpu0"};
    member.products = {"NVIDIA H200"};
    member.nics = {nic()};
    member.connected = true;
    member.report = soundReport(1, 2);
    member.report->connections = {{rank, 1 - rank, "NET/IB", 0, true}};
    outcome.members.push_back(member);
  }
  return outcome;
}

NcclOutcome alone(const std::string& transport) {
  NcclOutcome outcome = pairOf();
  outcome.members.pop_back();
  NcclMember& member = outcome.members.front();
  member.gpus = {"gpu0", "gpu1"};
  member.products = {"NVIDIA H200", "NVIDIA H200"};
  member.report = soundReport(2, 2);
  member.report->connections = {{0, 1, transport, std::nullopt, false}};
  return outcome;
}

Finding transportOf(const NcclOutcome& outcome) {
  return judgeNcclTransport(outcome, outcome.members.front());
}

NcclReport& reportOf(NcclOutcome& outcome, std::size_t member) {
  return *outcome.members[member].report;
}

TEST(JudgeNccl, RanksOfBothGuestsAreNamed) {
  const Finding finding = judgeNcclRanks(pairOf());
  EXPECT_EQ(finding.outcome, Outcome::passed);
  EXPECT_THAT(finding.seen,
              AllOf(HasSubstr("rank 0 in train0 with NCCL 2.28.9"), HasSubstr("rank 1 in train1")));
}

TEST(JudgeNccl, InventedRanksFail) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 1).ranks = 2;
  reportOf(outcome, 1).local = {1};
  EXPECT_EQ(judgeNcclRanks(outcome).outcome, Outcome::passed);
  reportOf(outcome, 1).local = {1, 1};
  EXPECT_EQ(judgeNcclRanks(outcome).outcome, Outcome::failed);
  EXPECT_EQ(judgeNcclRanks(outcome).seen, "train1 reports other ranks than rank 1: 1, 1");
  reportOf(outcome, 1).ranks = 3;
  EXPECT_EQ(judgeNcclRanks(outcome).seen, "train1 reports 3 ranks instead of 2");
}

TEST(NcclReport, RanksAreRead) {
  const NcclReport report =
      readNcclReport({{"ranks", 2}, {"local", {{{"rank", 1}}, {{"pci", "0000:01:00.0"}}}}});
  EXPECT_EQ(report.ranks, 2U);
  EXPECT_THAT(report.local, testing::ElementsAre(1U, UINT64_MAX));
}

TEST(JudgeNccl, MissingRankIsNamedAndNotTheOneThatWaits) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 0).error = "deadline expired while meeting the other ranks";
  reportOf(outcome, 0).stage = "meeting the other ranks";
  outcome.members[0].connected = false;
  outcome.members[1] = NcclMember{"train1", "train1:", 1, {"gpu0"}};
  outcome.members[1].problem = "the probe exited with code 137 and wrote no report";
  outcome.members[1].remedy = "run it by hand";

  const Finding finding = judgeNcclRanks(outcome);

  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_EQ(finding.seen, "rank 1 (train1): the probe exited with code 137 and wrote no report");
  EXPECT_EQ(finding.remedy, "run it by hand");
}

TEST(JudgeNccl, RanksThatNeverMeetAreAFaultOfTheNetworkBetweenThem) {
  NcclOutcome outcome = pairOf();
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).error = "deadline expired while meeting the other ranks";
    reportOf(outcome, each).stage = "meeting the other ranks";
    outcome.members[each].connected = false;
  }
  const Finding finding = judgeNcclRanks(outcome);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_THAT(finding.seen, HasSubstr("rank 0 waits at eth0:10.0.0.1"));
  EXPECT_THAT(finding.remedy, HasSubstr("NCCL_SOCKET_IFNAME"));
}

TEST(JudgeNccl, RanksThatHangTogetherAreAllNamed) {
  NcclOutcome outcome = pairOf();
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).error = "deadline expired while all-reduce of 1024 bytes";
    reportOf(outcome, each).stage = "all-reduce of 1024 bytes";
  }
  EXPECT_THAT(judgeNcclRanks(outcome).seen, AllOf(HasSubstr("rank 0 (train0): deadline"),
                                                  HasSubstr("rank 1 (train1): deadline")));
}

TEST(JudgeNccl, StoppedRankIsNotMissing) {
  NcclOutcome outcome = pairOf();
  outcome.members[0].stopped = true;
  outcome.members[0].report = std::nullopt;
  reportOf(outcome, 1).error = "cannot open GPU 0";
  EXPECT_EQ(judgeNcclRanks(outcome).seen, "rank 1 (train1): cannot open GPU 0");
}

TEST(JudgeNccl, GuestWithoutLibraryIsNotObservable) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 1).error = "cannot load libnccl.so.2";
  reportOf(outcome, 1).remedy = "install NCCL";
  reportOf(outcome, 1).stage = "loading NCCL";
  const Finding finding = judgeNcclRanks(outcome);
  EXPECT_EQ(finding.outcome, Outcome::notObservable);
  EXPECT_EQ(finding.remedy, "install NCCL");
}

TEST(JudgeNccl, GuestWithAnotherVersionIsNamedByNcclsWarning) {
  NcclOutcome outcome = pairOf();
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).error = "cannot join the other ranks: invalid usage";
    reportOf(outcome, each).remedy = "look at NCCL's log";
    reportOf(outcome, each).stage = "meeting the other ranks";
    reportOf(outcome, each).warnings = {
        "NET/Plugin: no plugin",
        "Mismatched NCCL version detected : rank 1 version 22105 rank 0 version 22809"};
    outcome.members[each].connected = false;
  }
  const Finding finding = judgeNcclRanks(outcome);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_THAT(finding.seen, HasSubstr("rank 1 (train1): cannot join the other ranks: invalid usage "
                                      "(NCCL: Mismatched NCCL version detected : rank 1 version"));
  EXPECT_EQ(finding.remedy, "install the same version of NCCL in all guests");
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).warnings = {"Duplicate GPU detected"};
  }
  EXPECT_EQ(judgeNcclRanks(outcome).remedy, "look at NCCL's log");
}

TEST(JudgeNccl, DifferentProductsAreAWarning) {
  NcclOutcome outcome = pairOf();
  EXPECT_FALSE(judgeNcclGpus(outcome));
  outcome.members[1].products = {"NVIDIA A100"};
  EXPECT_EQ(judgeNcclGpus(outcome)->outcome, Outcome::warning);
}

TEST(JudgeNccl, DataPassesOnlyIfEveryGuestCheckedEveryValue) {
  std::vector<Figure> figures;
  EXPECT_EQ(judgeNcclData(pairOf(), figures).outcome, Outcome::passed);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].source, ncclFigures);
  EXPECT_EQ(figures[0].gigabitsPerSecond, 170 * 8);

  NcclOutcome wrong = pairOf();
  reportOf(wrong, 1).runs[0].wrongValues = 3;
  EXPECT_THAT(judgeNcclData(wrong, figures).seen,
              HasSubstr("train1, all-reduce of 1 GiB: 3 wrong values"));
  NcclOutcome unchecked = pairOf();
  --reportOf(unchecked, 1).runs[1].checkedValues;
  EXPECT_EQ(judgeNcclData(unchecked, figures).outcome, Outcome::failed);
  NcclOutcome fewer = pairOf();
  reportOf(fewer, 1).runs.pop_back();
  EXPECT_THAT(judgeNcclData(fewer, figures).seen, HasSubstr("train1 reports no all-gather"));
  EXPECT_EQ(figures.size(), 2U) << "no figures of wrong data";
}

TEST(JudgeNccl, ImplausibleFiguresFail) {
  std::vector<Figure> figures;
  NcclOutcome more = pairOf();
  reportOf(more, 1).runs[0].checkedValues = UINT64_MAX;
  EXPECT_THAT(judgeNcclData(more, figures).seen,
              HasSubstr("18446744073709551615 values checked, although there are only 268435456"));
  // readNcclReport makes 0 of what is negative, no number or too large.
  NcclOutcome none = pairOf();
  reportOf(none, 1).runs[1].busGigabytes = 0;
  EXPECT_THAT(judgeNcclData(none, figures).seen, HasSubstr("no plausible bandwidth"));
  EXPECT_TRUE(figures.empty());
}

TEST(JudgeNccl, SlowestGuestHasTheFigure) {
  std::vector<Figure> figures;
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 0).runs[0].busGigabytes = 999;
  EXPECT_EQ(judgeNcclData(outcome, figures).outcome, Outcome::passed);
  EXPECT_EQ(figures.at(0).gigabitsPerSecond, 170 * 8);
}

TEST(JudgeNccl, MoreThanNvlinkCarriesIsAWarning) {
  NcclOutcome outcome = alone("P2P/CUMEM");
  const auto outcomeWith = [&](double bus) {
    reportOf(outcome, 0).runs[0].busGigabytes = bus;
    std::vector<Figure> figures;
    judgeNcclData(outcome, figures);
    return judgeNcclBandwidth(outcome, std::nullopt, {}, figures);
  };
  EXPECT_EQ(outcomeWith(400).outcome, Outcome::waived);
  const Finding wrong = outcomeWith(5000);
  EXPECT_EQ(wrong.outcome, Outcome::warning);
  EXPECT_EQ(wrong.expected, "at most 450 GB/s");
  EXPECT_THAT(wrong.remedy, HasSubstr("do not trust the guest"));
  outcome.members[0].products = {"", ""};
  EXPECT_EQ(outcomeWith(5000).outcome, Outcome::waived) << "of an unknown product";
}

TEST(JudgeNccl, OnlyWhatWasAskedForCounts) {
  std::vector<Figure> figures;
  NcclOutcome fewer = pairOf();
  fewer.sizes = {gibibyte, 10 * gibibyte};
  EXPECT_THAT(judgeNcclData(fewer, figures).seen,
              HasSubstr("train0 reports no all-reduce of 10 GiB"));
  NcclOutcome other = pairOf();
  other.sizes = {1024};
  EXPECT_THAT(judgeNcclData(other, figures).seen, HasSubstr("was not asked for"));
}

void leaveOut(NcclReport& report, const std::string& operation, const std::string& reason) {
  std::erase_if(report.runs, [&](const NcclRun& each) {
    return each.operation == operation && each.bytes == 10 * gibibyte;
  });
  report.omissions.push_back({operation, 10 * gibibyte, reason});
}

NcclOutcome withoutTenGibibytes(const std::string& reason) {
  NcclOutcome outcome = pairOf();
  outcome.sizes = {gibibyte, 10 * gibibyte};
  for (std::size_t each : {0U, 1U}) {
    leaveOut(reportOf(outcome, each), "all-reduce", reason);
    leaveOut(reportOf(outcome, each), "all-gather", reason);
  }
  return outcome;
}

TEST(JudgeNccl, SizesLeftOutForTimeAreAWarning) {
  std::vector<Figure> figures;
  const Finding slow = judgeNcclData(withoutTenGibibytes("too slow for the deadline"), figures);
  EXPECT_EQ(slow.outcome, Outcome::warning);
  EXPECT_THAT(slow.seen, HasSubstr("all-gather of 10 GiB left out: too slow"));
  EXPECT_THAT(slow.remedy, HasSubstr("--timeout"));
  EXPECT_EQ(figures.size(), 2U);
  EXPECT_EQ(judgeNcclData(withoutTenGibibytes("not enough free GPU memory"), figures).outcome,
            Outcome::passed);
}

TEST(JudgeNccl, OmissionOfOneGuestDoesNotExemptTheOther) {
  std::vector<Figure> figures;
  NcclOutcome outcome = withoutTenGibibytes("not enough free GPU memory");
  reportOf(outcome, 1).omissions.pop_back();
  EXPECT_THAT(judgeNcclData(outcome, figures).seen,
              HasSubstr("train1 reports no all-gather of 10 GiB"));
  outcome = pairOf();
  leaveOut(reportOf(outcome, 0), "all-gather", "not enough free GPU memory");
  reportOf(outcome, 0).omissions.back().bytes = gibibyte;
  reportOf(outcome, 0).runs.pop_back();
  const Finding finding = judgeNcclData(outcome, figures);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_EQ(finding.seen, "train0 left out all-gather of 1 GiB, which train1 ran");
}

TEST(JudgeNccl, OperationWithoutAnyRunIsNotObservable) {
  NcclOutcome outcome = pairOf();
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).runs.pop_back();
    reportOf(outcome, each).runs[0].busGigabytes = 90;
    reportOf(outcome, each).omissions = {{"all-gather", gibibyte, "not enough free GPU memory"}};
  }
  std::vector<Figure> figures;
  const Finding finding = judgeNcclData(outcome, figures);
  EXPECT_EQ(finding.outcome, Outcome::notObservable);
  EXPECT_THAT(finding.seen, HasSubstr("no run of all-gather"));
  EXPECT_EQ(judgeNcclBandwidth(outcome, 0.1, {}, figures).outcome, Outcome::notObservable);
}

TEST(JudgeNccl, InventedOperationsAndDuplicatesFailInAnyGuest) {
  std::vector<Figure> figures;
  const auto seenWith = [&](const NcclRun& added) {
    NcclOutcome outcome = pairOf();
    reportOf(outcome, 1).runs.push_back(added);
    const Finding finding = judgeNcclData(outcome, figures);
    EXPECT_EQ(finding.outcome, Outcome::failed);
    return finding.seen;
  };
  EXPECT_THAT(seenWith({"broadcast", gibibyte, 20}),
              HasSubstr("train1 reports an operation that was not asked for: broadcast"));
  EXPECT_THAT(seenWith({"all-reduce", gibibyte, 20}),
              HasSubstr("train1 reports all-reduce of 1 GiB twice"));
  EXPECT_THAT(seenWith({"all-reduce", 4096, 20}), HasSubstr("not asked for: 4096 bytes"));
  EXPECT_TRUE(figures.empty());
}

TEST(JudgeNccl, GuestsThatCountDifferentIterationsFail) {
  std::vector<Figure> figures;
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 1).runs[0].iterations = 1;
  EXPECT_THAT(judgeNcclData(outcome, figures).seen,
              HasSubstr("train1, all-reduce of 1 GiB: 1 iterations, 20 in train0"));
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).runs[0].iterations = 0;
  }
  EXPECT_THAT(judgeNcclData(outcome, figures).seen, HasSubstr("no iteration"));
}

TEST(JudgeNccl, GuestCannotClaimThatItsPartIsSmaller) {
  NcclOutcome outcome = pairOf();
  outcome.members[0].nics[0].movedBytes = MovedBytes{2 * gibibyte, 2 * gibibyte};
  reportOf(outcome, 0).runs[0].iterations = 1;
  reportOf(outcome, 0).runs[1].iterations = 1;
  EXPECT_EQ(judgeNcclTraffic(outcome, outcome.members[0])->outcome, Outcome::failed);
  reportOf(outcome, 0).runs.clear();
  EXPECT_EQ(judgeNcclTraffic(outcome, outcome.members[0])->outcome, Outcome::failed);
}

TEST(JudgeNccl, NothingRunIsNotPassed) {
  NcclOutcome outcome = pairOf();
  for (std::size_t each : {0U, 1U}) {
    reportOf(outcome, each).runs.clear();
    reportOf(outcome, each).omissions = {{"all-reduce", gibibyte, "not enough free GPU memory"}};
  }
  std::vector<Figure> figures;
  const Finding finding = judgeNcclData(outcome, figures);
  EXPECT_EQ(finding.outcome, Outcome::notObservable);
  EXPECT_THAT(finding.seen, HasSubstr("not enough free GPU memory"));
}

TEST(JudgeNccl, RdmaOfLeasedVfIntoGpuMemoryPasses) {
  const Finding finding = transportOf(pairOf());
  EXPECT_EQ(finding.outcome, Outcome::passed);
  EXPECT_EQ(finding.seen, "GDRDMA over rail0");
}

/// Two GPUs in the first guest, each of which uses the VF beside it.
NcclOutcome twoRails() {
  NcclOutcome outcome = pairOf();
  NcclMember& member = outcome.members[0];
  member.gpus = {"gpu0", "gpu1"};
  member.products = {"NVIDIA H200", "NVIDIA H200"};
  member.nics.push_back(nic());
  member.nics[1].entry = "rail1";
  member.nics[1].device = "mlx5_1";
  member.distances = {{{"rail0", "PIX"}, {"rail1", "SYS"}}, {{"rail0", "SYS"}, {"rail1", "PXB"}}};
  member.report->devices = {{0, "mlx5_0"}, {1, "mlx5_1"}};
  member.report->connections = {{0, 2, "NET/IB", 0, true}, {2, 1, "NET/IB", 1, true}};
  outcome.members[1].firstRank = 2;
  return outcome;
}

TEST(JudgeNccl, NicThatIsFartherThanAnotherOfTheVmIsAWarning) {
  NcclOutcome outcome = twoRails();
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::passed);
  auto& connections = reportOf(outcome, 0).connections;
  connections[1].device = 0;
  const Finding finding = transportOf(outcome);
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_EQ(finding.seen, "GDRDMA over rail0; gpu1 over rail0 (SYS), rail1 is nearer (PXB)");
  EXPECT_THAT(finding.remedy, HasSubstr("vfpass guest-setup train0"));
  connections.push_back({1, 2, "NET/IB", 1, true});
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::passed) << "gpu1 also uses the near one";
}

TEST(JudgeNccl, NicOfAnotherGpuOverNvlinkIsNotFar) {
  NcclOutcome outcome = twoRails();
  auto& connections = reportOf(outcome, 0).connections;
  connections[1].device = 0;
  connections[1].proxy = 0;
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::passed) << "PXN: gpu0 is beside rail0";
  connections[1].proxy = 2;
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::warning) << "no rank of this guest";
  outcome.members[0].distances.clear();
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::passed) << "unknown distances";
}

TEST(JudgeNccl, SocketsFail) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 0).connections = {{0, 1, "NET/Socket", 0, false}};
  const Finding finding = transportOf(outcome);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_THAT(finding.seen, HasSubstr("TCP sockets"));
  EXPECT_THAT(finding.remedy, HasSubstr("NCCL_IB_DISABLE"));
}

TEST(JudgeNccl, NicWithoutLeaseFailsWithItsName) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 0).devices = {{0, "mlx5_0+mlx5_9"}};
  const Finding finding = transportOf(outcome);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_THAT(finding.seen, AllOf(HasSubstr("mlx5_9"), Not(HasSubstr("mlx5_0"))));
  EXPECT_THAT(finding.remedy, HasSubstr("NCCL_IB_HCA: =mlx5_0 "));
}

TEST(JudgeNccl, MissingGpuDirectFails) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 0).connections[0].gpuDirect = false;
  const Finding finding = transportOf(outcome);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_THAT(finding.seen, HasSubstr("rail0 without GPUDirect"));
}

TEST(JudgeNccl, InventedLogIsNotPassed) {
  NcclOutcome outcome = pairOf();
  reportOf(outcome, 0).connections = {{0, 1, "P2P/CUMEM", std::nullopt, true}};
  EXPECT_THAT(transportOf(outcome).seen, HasSubstr("impossible"));
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::failed);

  reportOf(outcome, 0).connections = {{0, 1, "NET/IB", 7, true}};
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::notObservable);
  reportOf(outcome, 0).connections = {{0, 1, "NET/Libfabric", 0, true}};
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::notObservable);
  // Neither its own ranks nor those that do not exist connect it with the other guest.
  reportOf(outcome, 0).connections = {{0, 0, "NET/IB", 0, true}, {0, 9, "NET/IB", 0, true}};
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::notObservable);
  reportOf(outcome, 0).connections.clear();
  EXPECT_EQ(transportOf(outcome).outcome, Outcome::notObservable);
}

TEST(JudgeNccl, GpusOfOneGuestNeedNoNetwork) {
  EXPECT_EQ(transportOf(alone("P2P/CUMEM")).outcome, Outcome::passed);
  const Finding shared = transportOf(alone("SHM/direct/direct"));
  EXPECT_EQ(shared.outcome, Outcome::warning);
  EXPECT_THAT(shared.remedy, HasSubstr("topo -p2p"));
  EXPECT_FALSE(judgeNcclTraffic(alone("P2P/CUMEM"), alone("P2P/CUMEM").members.front()));
}

TEST(JudgeNccl, LeastTrafficIsWhatEveryAlgorithmMoves) {
  const std::vector<NcclRun> runs{{"all-reduce", 1000, 20, 0, 0, 0},
                                  {"all-gather", 1000, 10, 0, 0, 0}};
  EXPECT_EQ(leastTraffic(runs, 1, 2), (ClaimedBytes{{20000 + 5000, 20000 + 5000}}));
  EXPECT_EQ(leastTraffic(runs, 1, 4), (ClaimedBytes{{20000 + 2500, 20000 + 7500}}));
  EXPECT_EQ(leastTraffic({{"all-reduce", UINT64_MAX, UINT64_MAX, 0, 0, 0}}, 1, 2),
            (ClaimedBytes{{9000000000000000000U, 9000000000000000000U}}));
}

TEST(JudgeNccl, HostRefutesRdmaThatMovedNothing) {
  NcclOutcome outcome = pairOf();
  const auto judged = [&] { return judgeNcclTraffic(outcome, outcome.members.front()); };
  EXPECT_EQ(judged()->outcome, Outcome::passed);
  EXPECT_EQ(judged()->observer, Observer::host);

  outcome.members[0].nics[0].movedBytes = MovedBytes{gibibyte, gibibyte};
  EXPECT_EQ(judged()->outcome, Outcome::failed);
  EXPECT_THAT(judged()->remedy, HasSubstr("do not trust"));
  outcome.members[0].nics[0].movedBytes = MovedBytes{100 * gibibyte, gibibyte};
  EXPECT_EQ(judged()->outcome, Outcome::failed) << "it received nothing of the others";
  EXPECT_THAT(judged()->seen, HasSubstr("bytes received over rail0"));
  outcome.members[0].nics[0].movedBytes = std::nullopt;
  EXPECT_EQ(judged()->outcome, Outcome::notObservable);
  reportOf(outcome, 0).connections = {{0, 1, "NET/Socket", 0, false}};
  EXPECT_FALSE(judged()) << "it claims no RDMA";
}

TEST(JudgeNccl, OtherPacketsThanRdmaDoNotCountWhereTheHostCanTell) {
  NcclOutcome outcome = pairOf();
  NcclNic& counted = outcome.members[0].nics[0];
  const auto judged = [&] { return *judgeNcclTraffic(outcome, outcome.members.front()); };
  counted.rdmaBytes = MovedBytes{100 * gibibyte, 100 * gibibyte};
  EXPECT_EQ(judged().outcome, Outcome::passed);
  EXPECT_THAT(judged().expected, HasSubstr("by RDMA"));
  counted.rdmaBytes = MovedBytes{};
  EXPECT_EQ(judged().outcome, Outcome::failed) << "a guest that floods its VF";
  EXPECT_THAT(judged().remedy, HasSubstr("but no RDMA"));
  counted.rdmaBytes = std::nullopt;
  EXPECT_THAT(judged().expected, HasSubstr("of any kind"));
}

TEST(JudgeNccl, VfThatTheLogNamesHasToCarryTheData) {
  NcclOutcome outcome = pairOf();
  NcclMember& member = outcome.members.front();
  member.nics.push_back(nic());
  member.nics[1].entry = "rail1";
  member.nics[1].device = "mlx5_1";
  member.nics[0].movedBytes = MovedBytes{};
  const auto judged = [&] { return *judgeNcclTraffic(outcome, member); };
  EXPECT_EQ(judged().outcome, Outcome::failed) << "rail1 moved it, and the log says rail0";
  EXPECT_THAT(judged().seen, HasSubstr("0 bytes sent and 0 bytes received over rail0"));
  member.report->devices = {{0, "mlx5_0+mlx5_1"}};
  EXPECT_EQ(judged().outcome, Outcome::passed);
  member.report->devices = {{0, "mlx5_0"}};
  member.report->connectionsLeftOut = true;
  EXPECT_EQ(judged().outcome, Outcome::passed) << "the rest of the log may name rail1";
}

TEST(JudgeNccl, BandwidthIsShownBesideLimitsPublishedFigureAndLastRun) {
  std::vector<Figure> figures;
  judgeNcclData(pairOf(), figures);
  std::vector<Figure> last = figures;
  last[0].gigabitsPerSecond = 8 * 99;
  NcclOutcome outcome = pairOf();
  for (NcclMember& each : outcome.members) {
    each.nics[0].limit->gigabits = 1600;
    each.nics[0].limit->wire = 1600;
    each.nics[0].limit->pcie = 1800;
  }
  const Finding finding = judgeNcclBandwidth(outcome, std::nullopt, last, figures);
  EXPECT_EQ(finding.outcome, Outcome::waived);
  EXPECT_THAT(finding.seen,
              AllOf(HasSubstr("all-reduce 170 GB/s with 1 GiB"),
                    HasSubstr("all-gather 160 GB/s with 1 GiB"), HasSubstr("headers 200 GB/s"),
                    HasSubstr("published 176 GB/s"), HasSubstr("NVLink 450 GB/s"),
                    HasSubstr("last run all-reduce 99")));
  EXPECT_EQ(figures[0].limit, std::nullopt) << "not comparable for an all-reduce";
  EXPECT_EQ(figures[1].limit, 1600);
  EXPECT_EQ(judgeNcclBandwidth(outcome, 0.79, {}, figures).outcome, Outcome::passed);
  EXPECT_EQ(judgeNcclBandwidth(outcome, 0.82, {}, figures).outcome, Outcome::failed)
      << "the all-reduce's 85 % do not hide the all-gather's 80 %";
  outcome.members[1].nics[0].limit = std::nullopt;
  EXPECT_EQ(judgeNcclBandwidth(outcome, 0.8, {}, figures).outcome, Outcome::notObservable);
}

TEST(JudgeNccl, OfDifferentProductsTheSlowestNvlinkIsShown) {
  std::vector<Figure> figures;
  NcclOutcome outcome = pairOf();
  outcome.members[1].products = {"NVIDIA A100-SXM4-80GB"};
  EXPECT_THAT(judgeNcclBandwidth(outcome, std::nullopt, {}, figures).seen,
              HasSubstr("NVLink 300 GB/s (data sheet of A100-SXM)"));
  outcome.members[1].products = {"NVIDIA A100-PCIE-40GB"};
  EXPECT_THAT(judgeNcclBandwidth(outcome, std::nullopt, {}, figures).seen,
              HasSubstr("NVLink unknown"));
}

/// Two guests with a port of 100 GB/s and eight GPUs each.
NcclOutcome twiceEightGpus() {
  NcclOutcome outcome = pairOf();
  for (std::size_t each : {0U, 1U}) {
    outcome.members[each].firstRank = static_cast<unsigned>(8 * each);
    outcome.members[each].gpus = std::vector<std::string>(8, "gpu");
    outcome.members[each].products = std::vector<std::string>(8, "NVIDIA H200");
    outcome.members[each].report = soundReport(8, 16);
    reportOf(outcome, each).runs[1].busGigabytes = 95;
  }
  return outcome;
}

TEST(JudgeNccl, TreesMayExceedTheRateOfThePorts) {
  NcclOutcome outcome = twiceEightGpus();
  const auto outcomeWith = [&](double allReduce) {
    for (std::size_t each : {0U, 1U}) {
      reportOf(outcome, each).runs[0].busGigabytes = allReduce;
    }
    std::vector<Figure> figures;
    EXPECT_EQ(judgeNcclData(outcome, figures).outcome, Outcome::passed);
    return judgeNcclBandwidth(outcome, std::nullopt, {}, figures);
  };
  EXPECT_EQ(outcomeWith(187).outcome, Outcome::waived);
  const Finding wrong = outcomeWith(210);
  EXPECT_EQ(wrong.outcome, Outcome::warning);
  EXPECT_THAT(wrong.expected, HasSubstr("at most 188 GB/s"));
}

TEST(JudgeNccl, PortsOfOneCardShareItsLink) {
  NcclOutcome outcome = pairOf();
  for (NcclMember& each : outcome.members) {
    each.nics.push_back(nic());
    each.nics[1].pf = *parsePciAddress("0000:01:00.1");
  }
  std::vector<Figure> figures;
  reportOf(outcome, 0).runs[0].busGigabytes = 110;
  reportOf(outcome, 0).runs[1].busGigabytes = 110;
  judgeNcclData(outcome, figures);
  const Finding finding = judgeNcclBandwidth(outcome, 0.9, {}, figures);
  EXPECT_EQ(finding.outcome, Outcome::passed) << "110 of 112.5 GB/s";
  EXPECT_THAT(finding.seen, AllOf(HasSubstr("headers 200 GB/s"), HasSubstr("PCI Express 11")));
  EXPECT_EQ(figures[1].limit, 900);
  outcome.members[0].nics[1].pf = *parsePciAddress("0000:02:00.0");
  outcome.members[1].nics[1].machine = "other";
  EXPECT_EQ(judgeNcclBandwidth(outcome, 0.9, {}, figures).outcome, Outcome::failed)
      << "two cards: 110 of 200 GB/s";
}

TEST(JudgeNccl, PortIsCountedOnceAndTheLowerGuestCounts) {
  std::vector<Figure> figures;
  NcclOutcome outcome = pairOf();
  judgeNcclData(outcome, figures);
  outcome.members[0].nics.push_back(nic());  // another VF of the same PF
  EXPECT_EQ(judgeNcclBandwidth(outcome, std::nullopt, {}, figures).outcome, Outcome::warning)
      << "170 GB/s are more than the port's 100";
  outcome.members[0].nics[1].pf = *parsePciAddress("0000:02:00.0");
  EXPECT_EQ(judgeNcclBandwidth(outcome, std::nullopt, {}, figures).outcome, Outcome::warning);
  outcome.members[1].nics.push_back(outcome.members[0].nics[1]);
  EXPECT_EQ(judgeNcclBandwidth(outcome, std::nullopt, {}, figures).outcome, Outcome::waived);
}

TEST(NcclReport, AnyDocumentIsRead) {
  for (const char* text :
       {"{}", "[]", "null", R"({"runs": 3, "log": [], "local": {}})",
        R"({"runs": [3, {}, {"bytes": -1}], "log": {"connections": [[], {}]}})"}) {
    const NcclReport report = readNcclReport(nlohmann::json::parse(text));
    for (const NcclRun& run : report.runs) {
      EXPECT_NE(run.wrongValues, 0U) << "missing is not right";
    }
  }
  EXPECT_NE(readNcclReport(nlohmann::json::parse(R"({"error": 5})")).error, "");
  EXPECT_TRUE(
      readNcclReport(nlohmann::json::parse(R"({"log": {"left_out": 1}})")).connectionsLeftOut);
}

}  // namespace
}  // namespace vfpass::verify
