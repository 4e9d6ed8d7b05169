#include "vfpass/verify/verify_pair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fake/local_guest.hpp"
#include "judge_transfer.hpp"
#include "sound_inventory.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

// A probe that exchanges lines like the real one but moves no data; its reports are files in its
// directory.
const std::string probeText = std::string(R"(
here=${0%/*}
role=$1
all=" $* "
case $role in
hello) echo '{"protocol": 1}'; exit;;
inventory) cat "$here/inventory"; exit;;
errors) cat "$here/errors"; exit;;
ping) echo "$all" >>"$here/ping-arguments"; cat "$here/ping"; exit;;
esac
echo "$all" >>"$here/$role-arguments"
)") + fake::exchangeParts + R"(
if [ "$role" = listen ]; then
  asked=$(hear 1); say 1 answer; hear 2 >/dev/null; say 2 ''
  case $asked in
  *--beside-host*) cat "$here/listen-twice";;
  *--rdma-cm*) cat "$here/listen-rdma-cm";;
  *) cat "$here/listen";;
  esac
  exit
fi
say 1 "$all"; hear 1 >/dev/null; say 2 ''
case $all in
*--rdma-cm*) cat "$here/rdma-cm";;
*--sustain*) cat "$here/sustained";;
*' latency '*) cat "$here/latency";;
*' send '*) cat "$here/reach";;
*'--initiator-memory gpu'*' sizes '*) cat "$here/sizes-gpu";;
*' sizes '*) cat "$here/sizes-host";;
*--beside-host*) cat "$here/transfer-twice";;
*'--initiator-memory gpu'*) cat "$here/transfer-gpu-host";;
*'--target-memory gpu'*) cat "$here/transfer-host-gpu";;
*) cat "$here/transfer";;
esac
)";

Json transferRun(const std::string& memory, double gigabits) {
  const Json owner{{"bytes_checked", 100000}};
  return {{"owners", {{"initiator", owner}, {"target", owner}}},
          {"bandwidth", {{"gigabits_per_second", gigabits}}},
          {"memory",
           {{"initiator", {{"kind", memory}}},
            {"target", {{"kind", memory}, {"registration", "DMA-BUF"}}}}}};
}

Json mixedRun(const std::string& initiator, const std::string& target) {
  Json run = transferRun(initiator, 80);
  run["memory"]["target"]["kind"] = target;
  return run;
}

Json latencyRun(const std::string& operation, const std::string& memory) {
  Json run = transferRun(memory, 0);
  run["settings"] = {{"operation", operation}, {"bytes", 8}};
  run["latency"] = {{"median", 2.5}, {"p99", 4}};
  return run;
}

Json passed(const Json& runs) { return {{"passed", true}, {"runs", runs}}; }

class VerifyPairTest : public testing::Test {
 protected:
  VerifyPairTest() {
    plan.folder = guests.folder;
    plan.messageBytes = 1000;
    plan.iterations = 10;
    plan.relaxedOrdering = RelaxedOrdering::off;
    guests.addProgram("vfpass-probe-1", probeText);
    const Json owner{{"owner", {{"bytes_checked", 100000}}}};
    write("inventory", Json::parse(soundInventory));
    write("listen", passed(Json::array({owner})));
    write("listen-twice", passed({owner, owner}));
    write("listen-rdma-cm", passed(Json::array({owner})));
    write("errors", Json::object());
    write("ping",
          Json{{"sent", 5}, {"received", 4}, {"median_microseconds", 210.4}, {"passed", true}});
    write("reach", passed(Json::array({latencyRun("send", "host")})));
    write("transfer", passed(Json::array({transferRun("host", 97)})));
    write("sizes-host", passed(Json::array({transferRun("host", 97)})));  // of no size
    Json sustained = transferRun("host", 97);
    sustained["sustained"] = {
        {"begin_seconds", 5}, {"end_seconds", 15}, {"messages", 20}, {"gigabits_per_second", 2e-5}};
    write("sustained", passed(Json::array({sustained})));
    write("transfer-twice", passed({transferRun("host", 97), transferRun("gpu", 90)}));
    write("transfer-gpu-host", passed(Json::array({mixedRun("gpu", "host")})));
    write("transfer-host-gpu", passed(Json::array({mixedRun("host", "gpu")})));
    Json connected = transferRun("host", 1);
    connected["rdma_cm"] = {{"source", "10.99.0.1"}, {"destination", "10.99.0.2"}, {"port", 4711}};
    write("rdma-cm", passed(Json::array({connected})));
    write("latency", passed({latencyRun("read", "host"), latencyRun("send", "host")}));
  }

  void write(const std::string& name, const Json& content) const {
    std::ofstream(guests.folder / name) << content << '\n';
  }

  void addGpu(const std::string& index = R"("index": 3)") const {
    Json inventory = Json::parse(soundInventory);
    inventory["gpus"] = Json::parse(R"({"libcuda": {"found": true}, "devices": [{)" + index +
                                    R"(, "name": "NVIDIA H200", "pci": "00000000:05:00.0",
                                        "dma_buf_supported": 1}]})");
    inventory["pci"] = Json::parse(
        R"([{"address": "0000:05:00.0", "path": "/sys/devices/pci0000:05/0000:05:00.0"}])");
    inventory["distances"] =
        Json::parse(R"([{"nic": "0000:01:00.0", "gpu": "0000:05:00.0", "distance": "PIX"}])");
    write("inventory", inventory);
  }

  // The content of the guest's probe: one with other content would not be run.
  [[nodiscard]] std::string contentOfProbe() const {
    std::ifstream stream(guests.folder / "vfpass-probe-1");
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // Whether a probe in this role has been run with that.
  [[nodiscard]] bool asked(const std::string& role, const std::string& text) const {
    std::ifstream stream(guests.folder / (role + "-arguments"));
    const std::string arguments{std::istreambuf_iterator<char>(stream), {}};
    return arguments.find(text) != std::string::npos;
  }

  static Lease lease() {
    Lease lease;
    lease.entry = "rail0";
    vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
    return lease;
  }

  [[nodiscard]] Lease farLease() const {
    Lease lease = VerifyPairTest::lease();
    lease.pf = farPf;
    return lease;
  }

  // Both guests are this machine and share one directory.
  VerifyReport verify() {
    const auto runCheckpoint = [this] { checkpoint(); };
    agent::Agent near(guests.hypervisor, Uuid{}, "train0", std::chrono::seconds(60), runCheckpoint);
    agent::Agent far(guests.hypervisor, Uuid{}, "train1", std::chrono::seconds(60), runCheckpoint);
    const auto traffic = [this](const Lease&) {
      moved += movedPerRead;
      return VfTraffic{moved, moved, 0, 0};
    };
    const auto nearTraffic = [this, traffic](const Lease& lease) {
      VfTraffic counted = traffic(lease);
      counted.receivedBytes = inventsSizes && asked("connect", " sizes ") ? 0 : moved;
      return counted;
    };
    PairGuest initiator{near, "train0", {lease()}, {}, nearTraffic, {}, nearGpus};
    PairGuest target{far, "train1", {farLease()}, farHost, traffic, {}, {}, farMachine};
    target.placement = farPlacement;
    if (!unobserved.empty()) {
      target.unobserved = unobserved;
      target.traffic = {};
    }
    return verifyPair(initiator, target, {contentOfProbe(), "vfpass-probe-1"}, plan, {{}, {}, {}});
  }

  static std::vector<std::string> keys(const VerifyReport& report, const std::string& prefix) {
    std::vector<std::string> found;
    for (const auto& finding : report.findings) {
      if (finding.key.starts_with(prefix)) {
        found.push_back(finding.key + " " + std::string(toString(finding.outcome)));
      }
    }
    return found;
  }

  static std::vector<std::string> operations(const VerifyReport& report) {
    std::vector<std::string> found;
    for (const auto& figure : report.figures) {
      found.push_back(figure.memory + " " + figure.operation +
                      (figure.relaxedOrdering ? " relaxed" : ""));
    }
    return found;
  }

  std::vector<std::string> argumentsOf(const std::string& command) const {
    std::vector<std::string> lines;
    std::ifstream stream(guests.folder / (command + "-arguments"));
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  std::ptrdiff_t exchanges() const {
    return std::ranges::count_if(std::filesystem::directory_iterator(guests.folder),
                                 [](const auto& entry) {
                                   return entry.path().filename().string().starts_with("exchange-");
                                 });
  }

  fake::LocalGuest guests;
  std::function<void()> checkpoint = [] {};
  VerifyPlan plan;
  std::vector<LeasedGpu> nearGpus;
  std::string farMachine;
  std::string unobserved;
  std::function<HostSide(const Lease&)> farHost;
  std::optional<HostPlacement> farPlacement;
  PciAddress farPf = *parsePciAddress("0000:3b:00.0");
  std::uint64_t moved = 0;
  std::uint64_t movedPerRead = 20000;
  bool inventsSizes = false;  ///< the initiator receives nothing from then on
};

// The agents have a minute.
TEST_F(VerifyPairTest, ProbesEndWhileTheirReportsCanStillBeRead) {
  plan.probeTimeout = std::chrono::seconds(240);
  verify();
  for (const char* role : {"connect", "listen"}) {
    EXPECT_TRUE(asked(role, "--deadline ")) << role;
    EXPECT_FALSE(asked(role, "--deadline 240")) << role;
  }
}

TEST_F(VerifyPairTest, ChecksReachThenDataThenLatency) {
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(keys(report, "peer-"),
              ElementsAre("peer-network passed", "peer-ip passed", "peer-reach passed",
                          "peer-rdma-cm passed", "peer-data-host passed", "peer-data-host passed",
                          "peer-latency-host passed"));
  EXPECT_EQ(keys(report, "counters").size(), 4U) << "for both VFs, after each transfer";
  EXPECT_THAT(operations(report), ElementsAre("host write", "host read", "host read", "host send"));
  EXPECT_THAT(argumentsOf("listen"), Contains(HasSubstr(" --device mlx5_0 ")));
}

TEST_F(VerifyPairTest, JudgesPlacementOfPeerOrStatesThatItIsUnknown) {
  EXPECT_THAT(keys(verify(), "numa-placement"), IsEmpty()) << "the peer's host was not asked";
  farHost = [](const Lease&) {
    HostSide side;
    side.hold = {true, "vfio-pci", true, "process 42"};
    return side;
  };
  const auto unknown = verify();
  EXPECT_THAT(keys(unknown, "numa-placement"), ElementsAre("numa-placement waived"));
  farPlacement.emplace();
  farPlacement->devices = {{"rail0", 1}};
  farPlacement->hostNodes = 2;
  farPlacement->vcpuNodes = {0};
  const auto report = verify();
  EXPECT_THAT(keys(report, "numa-placement"), ElementsAre("numa-placement warning"));
  const auto found = std::ranges::find(report.findings, "numa-placement", &Finding::key);
  EXPECT_EQ(found->subject, "train1:");
  EXPECT_EQ(found->observer, Observer::host);
}

TEST_F(VerifyPairTest, QuotesKernelLogsAlsoIfItEndsEarly) {
  const std::string line = "mlx5_core 0000:01:00.0: health: fatal error";
  write("errors", {{"kernel_log", {line}}});
  const auto seenAt = [](const VerifyReport& report, std::string_view key) {
    const auto found = std::ranges::find(report.findings, key, &Finding::key);
    return found == report.findings.end() ? std::string() : found->seen;
  };
  write("transfer", "no report");
  const auto transfer = verify();
  EXPECT_THAT(seenAt(transfer, "peer-data-host"),
              AllOf(HasSubstr("; kernel log of train0: " + line),
                    HasSubstr("; kernel log of train1: " + line)));
  EXPECT_THAT(seenAt(transfer, "peer-reach"), Not(HasSubstr("kernel log"))) << "passed";
  write("inventory", "no report");
  const auto inventory = verify();
  EXPECT_EQ(keys(inventory, "inventory").size(), 2U);
  EXPECT_THAT(seenAt(inventory, "inventory"), HasSubstr("; the guest's kernel log: " + line));
  write("errors", "no report");
  EXPECT_THAT(seenAt(verify(), "inventory"), AllOf(Not(HasSubstr("kernel log")), Not("")));
}

TEST_F(VerifyPairTest, TestsRelaxedOrderingAsRequested) {
  plan.relaxedOrdering = RelaxedOrdering::automatic;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(operations(report), ElementsAre("host write", "host read", "host write relaxed",
                                              "host read relaxed", "host read", "host send"));
  EXPECT_THAT(argumentsOf("connect"), Contains(HasSubstr("--relaxed-ordering")));
  EXPECT_EQ(keys(report, "relaxed-ordering").size(), 1U);
}

TEST_F(VerifyPairTest, ComparesGpuWithHostFiguresOfSameSession) {
  addGpu();
  plan.gpuTest = GpuTest::wanted;
  plan.latency = false;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(operations(report),
              ElementsAre("host write", "host read", "gpu write", "gpu read", "gpu-to-host write",
                          "host-to-gpu read", "host-to-gpu write", "gpu-to-host read"));
  EXPECT_EQ(report.figures[3].besideHost, 97);
  EXPECT_EQ(keys(report, "peer-data-gpu-to-host"),
            std::vector<std::string>(2, "peer-data-gpu-to-host passed"));
  EXPECT_EQ(keys(report, "peer-data-host-to-gpu"),
            std::vector<std::string>(2, "peer-data-host-to-gpu passed"));
  EXPECT_THAT(keys(report, "gpu-beside-host"), ElementsAre("gpu-beside-host passed"));
  EXPECT_THAT(argumentsOf("connect"), Contains(HasSubstr("--beside-host")));
  EXPECT_THAT(argumentsOf("listen"), Contains(HasSubstr("--gpu 0000:05:00.0")));
}

TEST_F(VerifyPairTest, FailsWithoutWantedGpu) {
  plan.gpuTest = GpuTest::wanted;
  EXPECT_THAT(keys(verify(), "gpu"), ElementsAre("gpu failed", "gpu failed"));
}

TEST_F(VerifyPairTest, FailsForGpuUnknownToCuda) {
  addGpu(R"("index": null)");
  plan.gpuTest = GpuTest::wanted;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_EQ(std::ranges::count(keys(report, "gpu-driver"), "gpu-driver failed"), 2);
}

TEST_F(VerifyPairTest, GpuPathThatOneVmCannotUseIsNotObservable) {
  addGpu();
  nearGpus = {{"gpu0", {*parsePciAddress("0000:05:00.0")}, {}}};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(keys(report, "peer-data-gpu"),
              ElementsAre("peer-data-gpu not observable", "peer-data-gpu-to-host passed"));
  EXPECT_THAT(keys(report, "peer-data-host-to-gpu"), ElementsAre("peer-data-host-to-gpu passed"));
  EXPECT_THAT(keys(report, "gpu-tested"), ElementsAre("gpu-tested not observable"));
  plan.gpuTest = GpuTest::excluded;
  EXPECT_EQ(verdict(verify()), Outcome::passed);
}

TEST_F(VerifyPairTest, GpuOfFailedDeviceHasTheReasonOnce) {
  addGpu();
  nearGpus = {{"gpu0", {*parsePciAddress("0000:05:00.0")}, {}}};
  Json inventory = Json::parse(std::ifstream(guests.folder / "inventory"));
  inventory["rdma"]["devices"][0]["ports"][0]["state"] = "1: DOWN";
  write("inventory", inventory);
  const auto report = verify();
  const auto found = std::ranges::find(report.findings, "gpu-tested", &Finding::key);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->seen, "not tested: rail0 failed before");
}

TEST_F(VerifyPairTest, SizesInGpuMemoryHaveTheLimit) {
  addGpu();
  plan.gpuTest = GpuTest::wanted;
  plan.latency = false;
  plan.sizes = true;
  movedPerRead = std::uint64_t{1} << 30U;
  Json runs = Json::array();
  for (const char* operation : {"write", "read"}) {
    for (unsigned power = 1; power <= 24; ++power) {
      Json run = transferRun("gpu", 50);
      run["settings"] = {{"operation", operation}, {"bytes", std::uint64_t{1} << power}};
      run["owners"]["target"]["bytes_checked"] = std::uint64_t{1} << power;
      runs.push_back(run);
    }
  }
  write("sizes-gpu", passed(runs));
  const auto report = verify();
  EXPECT_THAT(keys(report, "peer-sizes-gpu"), ElementsAre("peer-sizes-gpu passed"));
  const auto figure = std::ranges::find_if(report.figures, [](const Figure& each) {
    return each.source == sizeFigures && each.memory == "gpu";
  });
  ASSERT_NE(figure, report.figures.end());
  EXPECT_TRUE(figure->limit);
}

TEST_F(VerifyPairTest, InventedReadsOfSizesFailAtTheCounters) {
  plan.latency = false;
  plan.sizes = true;
  inventsSizes = true;
  movedPerRead = std::uint64_t{1} << 30U;
  Json runs = Json::array();
  for (const char* operation : {"write", "read"}) {
    for (unsigned power = 1; power <= 24; ++power) {
      Json run = transferRun("host", 50);
      run["settings"] = {{"operation", operation}, {"bytes", std::uint64_t{1} << power}};
      run["owners"]["target"]["bytes_checked"] = std::uint64_t{1} << power;
      runs.push_back(run);
    }
  }
  write("sizes-host", passed(runs));
  const auto report = verify();
  const auto failed = std::ranges::count_if(report.findings, [](const Finding& each) {
    return each.key == "counters" && each.seen.starts_with("sizes: ") &&
           each.outcome == Outcome::failed;
  });
  EXPECT_EQ(failed, 1) << "of the initiator, which receives no reads";
}

TEST(ClaimedBytes, WritesAndReadsOfAPairMoveInDifferentDirections) {
  Json report{{"runs", Json::array()}};
  for (const auto& [operation, bytes] : {std::pair{"write", 4096}, {"write", 4096}, {"read", 64}}) {
    report["runs"].push_back({{"settings", {{"operation", operation}}},
                              {"owners", {{"initiator", {{"bytes_checked", bytes}}}}}});
  }
  Transfer transfer;
  transfer.messageBytes = 1;
  const ClaimedBytes claimed = claimedBytes(transfer, report, false);
  EXPECT_EQ(claimed, (ClaimedBytes{{8192, 64}, false}));
  EXPECT_EQ(atOtherEnd(claimed), (ClaimedBytes{{64, 8192}, false}));
  EXPECT_EQ(claimedBytes(transfer, report, true), (ClaimedBytes{{8256, 8256}, true}));
  transfer.operation = "read";
  transfer.messageBytes = 100;
  transfer.iterations = 1;
  EXPECT_EQ(claimedBytes(transfer, report, false), (ClaimedBytes{{8192, 100}, false}))
      << "at least what was requested";
}

// A guest that invents the reads of `--sizes` has moved the writes all the same.
TEST(ClaimedBytes, EachDirectionNeedsItsOwnCounter) {
  const ClaimedBytes claimed{{8192, 4096}, false};
  const auto outcome = [&](std::uint64_t sent, std::uint64_t received) {
    return judgeTraffic("rail0", claimed, VfTraffic{7, 7, 0, 0},
                        VfTraffic{7 + received, 7 + sent, 0, 0});
  };
  EXPECT_EQ(outcome(8300, 4200).outcome, Outcome::passed) << "headers and acknowledgements add";
  EXPECT_EQ(outcome(20000, 4095).outcome, Outcome::failed);
  EXPECT_EQ(outcome(8191, 20000).outcome, Outcome::failed);
  EXPECT_EQ(outcome(8191, 64).seen, "8191 bytes sent and 64 bytes received");
  const ClaimedBytes loopback{{8192, 8192}, true};
  EXPECT_EQ(judgeTraffic("rail0", loopback, VfTraffic{}, VfTraffic{0, 8192, 0, 0}).outcome,
            Outcome::passed);
}

TEST(ClaimedBytes, OtherVfMayHaveCarriedOneDirection) {
  const ClaimedBytes claimed{{8192, 4096}, false};
  const auto outcome = [&](std::uint64_t sent, std::uint64_t received) {
    return judgeOthers("rail0", claimed, {{"rail1", VfTraffic{}, VfTraffic{received, sent, 0, 0}}})
        .outcome;
  };
  EXPECT_EQ(outcome(8191, 4095), Outcome::passed);
  EXPECT_EQ(outcome(0, 4096), Outcome::notObservable);
  EXPECT_EQ(outcome(8192, 0), Outcome::notObservable);
  EXPECT_EQ(
      judgeOthers("rail0", {{8192, 0}}, {{"rail1", VfTraffic{}, VfTraffic{9000, 0, 0, 0}}}).outcome,
      Outcome::passed)
      << "it only received";
}

TEST_F(VerifyPairTest, SilentIpAddressIsAWarning) {
  write(
      "ping",
      Json{{"sent", 5}, {"received", 0}, {"problem", "Network is unreachable"}, {"passed", false}});
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed) << "RDMA works";
  EXPECT_THAT(keys(report, "peer-ip"), ElementsAre("peer-ip warning"));
  const auto found = std::ranges::find(report.findings, "peer-ip", &Finding::key);
  EXPECT_THAT(found->seen, HasSubstr("no reply: Network is unreachable"));
  EXPECT_THAT(found->remedy, HasSubstr("firewall"));
}

TEST_F(VerifyPairTest, PingsTheAddressOfTheOtherGidThroughTheInterface) {
  const auto report = verify();
  const auto found = std::ranges::find(report.findings, "peer-ip", &Finding::key);
  EXPECT_THAT(found->seen, HasSubstr("4 of 5 echo requests, 210 us"));
  EXPECT_THAT(argumentsOf("ping"), ElementsAre(HasSubstr("--interface eth1 --address ")));
}

TEST_F(VerifyPairTest, ConnectsByRdmaCm) {
  const auto report = verify();
  const auto found = std::ranges::find(report.findings, "peer-rdma-cm", &Finding::key);
  ASSERT_NE(found, report.findings.end());
  EXPECT_THAT(found->seen, HasSubstr("10.99.0.1 to 10.99.0.2, "));
  EXPECT_THAT(argumentsOf("connect"), Contains(HasSubstr(" --rdma-cm --bytes 4096 ")));
}

TEST_F(VerifyPairTest, RdmaCmThatCannotConnectIsWarning) {
  write("rdma-cm", {{"passed", false},
                    {"error", "rdma_cm cannot connect: RDMA_CM_EVENT_UNREACHABLE"},
                    {"remedy", "let firewalls pass UDP port 4791"}});
  write("listen-rdma-cm",
        {{"passed", false}, {"error", "the other side failed: x"}, {"remedy", "look there"}});
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  const auto found = std::ranges::find(report.findings, "peer-rdma-cm", &Finding::key);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->outcome, Outcome::warning);
  EXPECT_THAT(found->seen, HasSubstr("RDMA_CM_EVENT_UNREACHABLE"));
  EXPECT_EQ(found->remedy, "let firewalls pass UDP port 4791");
  EXPECT_THAT(keys(report, "peer-data-host"),
              ElementsAre("peer-data-host passed", "peer-data-host passed"));
}

TEST_F(VerifyPairTest, RdmaCmNeedsAllBytesOfTarget) {
  write("listen-rdma-cm", passed(Json::array({Json{{"owner", {{"bytes_checked", 81919}}}}})));
  EXPECT_THAT(keys(verify(), "peer-rdma-cm"), ElementsAre("peer-rdma-cm failed"));
}

TEST_F(VerifyPairTest, GuestWithoutRdmaCmIsWaived) {
  Json inventory = Json::parse(soundInventory);
  inventory["rdma"]["devices"][0]["ports"][0]["ip_addresses"] = Json::array();
  write("inventory", inventory);
  auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(keys(report, "peer-rdma-cm"), ElementsAre("peer-rdma-cm waived"));
  auto found = std::ranges::find(report.findings, "peer-rdma-cm", &Finding::key);
  EXPECT_EQ(found->seen, "rail0: no IP address on the interface of mlx5_0");
  inventory["rdma"]["librdmacm"] = {{"found", false}, {"detail", "no such file"}};
  write("inventory", inventory);
  report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  found = std::ranges::find(report.findings, "peer-rdma-cm", &Finding::key);
  EXPECT_THAT(found->seen, HasSubstr("librdmacm is not installed"));
}

TEST_F(VerifyPairTest, EqualPfAddressesOnTwoHostsAreTwoPfs) {
  farPf = lease().pf;
  farMachine = "host2";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(keys(report, "peer-wire"), testing::IsEmpty());
}

TEST_F(VerifyPairTest, HostThatCannotBeAskedIsNotObservable) {
  farMachine = "host2";
  unobserved = "ssh: Permission denied (publickey).";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(keys(report, "peer-host"), ElementsAre("peer-host not observable"));
  EXPECT_THAT(keys(report, "peer-data-host"),
              ElementsAre("peer-data-host passed", "peer-data-host passed"));
  std::vector<std::string> counters;
  for (const auto& finding : report.findings) {
    if (finding.key == "counters") {
      counters.push_back(finding.subject + " " + std::string(toString(finding.outcome)));
    }
  }
  EXPECT_THAT(counters, ElementsAre("rail0 passed", "train1:rail0 not observable", "rail0 passed",
                                    "train1:rail0 not observable"));
}

TEST_F(VerifyPairTest, HostThatStopsAnsweringIsNotObservable) {
  farMachine = "host2";
  farHost = [](const Lease&) -> HostSide { throw Error("ssh: no reply within 30 s"); };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  const auto found = std::ranges::find_if(report.findings, [](const Finding& each) {
    return each.key == "device-host" && each.subject == "train1:rail0";
  });
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->outcome, Outcome::notObservable);
  EXPECT_THAT(found->seen, HasSubstr("no reply within 30 s"));
}

TEST_F(VerifyPairTest, VfsOfOnePfAreJudgedByLoopbackLimit) {
  plan.minimumShare = 0.9;
  const auto expected = [this] {
    const auto report = verify();
    const auto found = std::ranges::find(report.findings, "bandwidth", &Finding::key);
    return found == report.findings.end() ? "" : found->expected;
  };
  EXPECT_THAT(expected(), HasSubstr("of 98 Gb/s (the port after headers;"));
  farPf = lease().pf;
  EXPECT_THAT(expected(), HasSubstr("(the port after headers, in loopback;"));
  const auto report = verify();
  const auto wire = std::ranges::find(report.findings, "peer-wire", &Finding::key);
  ASSERT_NE(wire, report.findings.end());
  EXPECT_EQ(wire->outcome, Outcome::waived);
  EXPECT_EQ(wire->observer, Observer::host);
  EXPECT_THAT(wire->seen, HasSubstr("never reaches the wire"));
}

TEST_F(VerifyPairTest, SkipsChecksAfterFailure) {
  write("reach", {{"passed", false}, {"error", "transport retry counter exceeded"}});
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_THAT(keys(report, "peer-"),
              ElementsAre("peer-network passed", "peer-ip passed", "peer-reach failed"));
  EXPECT_EQ(argumentsOf("connect").size(), 1U);
}

TEST_F(VerifyPairTest, AllPairsMoveDataAgainTogether) {
  plan.allPairs = true;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(keys(report, "peer-together"), ElementsAre("peer-together-host passed"));
  EXPECT_THAT(keys(report, "all-pairs"), ElementsAre("all-pairs passed"));
  ASSERT_EQ(report.allPairs.size(), 1U);
  ASSERT_EQ(report.allPairs[0].pairs.size(), 1U);
  EXPECT_DOUBLE_EQ(report.allPairs[0].pairs[0].alone, 97);
  EXPECT_DOUBLE_EQ(report.allPairs[0].pairs[0].together, 2e-5);
  EXPECT_EQ(keys(report, "counters").size(), 6U) << "also for the transfers at the same time";
  EXPECT_THAT(argumentsOf("connect").back(), HasSubstr("--sustain 10000"));
}

TEST_F(VerifyPairTest, CancellationOfAllPairsLeavesNothingInGuests) {
  plan.allPairs = true;
  guests.addProgram("vfpass-probe-1",
                    std::string("case $*' ' in *--sustain*) echo $$ >\"${0%/*}/connect-pid\"; exec "
                                "sleep 60;; esac\n") +
                        probeText);
  checkpoint = [this] {
    if (std::filesystem::exists(guests.folder / "connect-pid")) {
      checkpoint = [] {};
      throw Cancelled(SIGINT, "stopped by SIGINT");
    }
  };
  EXPECT_THROW(verify(), Cancelled);
  std::string pid;
  std::ifstream(guests.folder / "connect-pid") >> pid;
  EXPECT_TRUE(fake::isKilled(pid));
  EXPECT_TRUE(fake::eventually([this] { return exchanges() == 0; }));
}

TEST_F(VerifyPairTest, CancellationLeavesNothingInGuests) {
  guests.addProgram(
      "vfpass-probe-1",
      std::string("case $1 in connect|listen) echo $$ >\"${0%/*}/$1-pid\"; exec sleep "
                  "60;; esac\n") +
          probeText);
  checkpoint = [this] {
    if (std::filesystem::exists(guests.folder / "connect-pid") &&
        std::filesystem::exists(guests.folder / "listen-pid")) {
      checkpoint = [] {};
      throw Cancelled(SIGINT, "stopped by SIGINT");
    }
  };
  EXPECT_THROW(verify(), Cancelled);
  for (const char* role : {"connect", "listen"}) {
    std::string pid;
    std::ifstream(guests.folder / (std::string(role) + "-pid")) >> pid;
    EXPECT_TRUE(fake::isKilled(pid)) << role;
  }
  EXPECT_TRUE(fake::eventually([this] { return exchanges() == 0; }));
}

TEST_F(VerifyPairTest, InjectsFaultsIntoTransfersOnly) {
  plan.probeArguments = {"--inject", "flip"};
  const auto report = verify();
  EXPECT_THAT(keys(report, "peer-latency"), Not(Contains(HasSubstr("passed"))));
  const auto sessions = argumentsOf("connect");
  ASSERT_EQ(sessions.size(), 4U);
  EXPECT_THAT(sessions[0], Not(HasSubstr("--inject")));
  EXPECT_THAT(sessions[1], Not(HasSubstr("--inject")));
  EXPECT_THAT(sessions[2], HasSubstr("--inject flip"));
}

}  // namespace
}  // namespace vfpass::verify
