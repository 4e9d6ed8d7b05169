#include "vfpass/verify/verify_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "after_run.hpp"
#include "scripted_guest.hpp"
#include "sound_inventory.hpp"
#include "vfpass/error.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string transferOf(std::uint64_t bytes, double gigabits = 97) {
  return R"({"passed": true, "runs": [{"owners": {"initiator": {"bytes_checked": 0}, "target":
    {"bytes_checked": )" +
         std::to_string(bytes) + R"(}}, "bandwidth": {"gigabits_per_second": )" +
         std::to_string(gigabits) + "}}]}";
}

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    Lease lease;
    lease.entry = "rail0";
    vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
    plan.leases = {lease};
    plan.messageBytes = 1000;
    plan.iterations = 10;
    plan.relaxedOrdering = RelaxedOrdering::off;
    hostSide.link = {8000, 16};
    hostSide.hold = {true, "vfio-pci", true, "process 7 (qemu)"};
    host = [this](const Lease&) { return hostSide; };
    guest.inventory = soundInventory;
    guest.transfers = {transferOf(10000), transferOf(10000)};
    // The host counts what the guest sends.
    traffic = [this](const Lease&) {
      const auto sent = std::ranges::count(guest.commands, "loopback") * 11000;
      return VfTraffic{0, static_cast<std::uint64_t>(sent), 0, 0};
    };
  }

  VerifyReport verify(int timeout = 20) {
    agent::Agent agent(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(timeout));
    return verifyGuest(agent, {"the probe", "vfpass-probe-1"}, plan, {traffic, {}, host});
  }

  // A measurement between the two kinds of memory; with one(), a report that has only this one.
  static std::string run(const std::string& initiator, const std::string& target) {
    return R"({"owners": {"target": {"bytes_checked": 10000}}, "bandwidth":
      {"gigabits_per_second": 97}, "memory": {"initiator": {"kind": ")" +
           initiator + R"(", "registration": "dma-buf"}, "target": {"kind": ")" + target +
           R"("}}})";
  }

  static std::string one(const std::string& initiator, const std::string& target) {
    return R"({"passed": true, "runs": [)" + run(initiator, target) + "]}";
  }
  static const Finding& find(const VerifyReport& report, std::string_view key) {
    static const Finding none{};
    const auto found = std::ranges::find(report.findings, key, &Finding::key);
    return found == report.findings.end() ? none : *found;
  }

  void replace(const std::string& from, const std::string& to) {
    const auto at = guest.inventory.find(from);
    ASSERT_NE(at, std::string::npos);
    guest.inventory.replace(at, from.size(), to);
  }

  ScriptedGuest guest;
  VerifyPlan plan;
  std::function<std::optional<VfTraffic>(const Lease&)> traffic;
  HostSide hostSide;
  std::function<HostSide(const Lease&)> host;
};

TEST_F(VerifyTest, PassesForSoundGuest) {
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(report.figures.size(), 4U) << "write and read, latency of read and send";
  EXPECT_THAT(find(report, "latency-host").seen, HasSubstr("read 2.5 us, 99 % within 4"));
  EXPECT_EQ(guest.written["/var/lib/vfpass-probe/vfpass-probe-1.new"], "the probe");
}

TEST_F(VerifyTest, QuotesKernelLogAtFailedCheck) {
  replace(R"("state": "4: ACTIVE")", R"("state": "1: DOWN")");
  guest.errors = R"({"kernel_log": ["mlx5_core 0000:01:00.0: port_module: error"]})";
  EXPECT_THAT(find(verify(), "port").seen,
              HasSubstr("the guest's kernel log: mlx5_core 0000:01:00.0: port_module: error"));
}

TEST_F(VerifyTest, QuotesKernelLogAlsoIfItEndsEarly) {
  const std::string line = "mlx5_core 0000:01:00.0: health: fatal error";
  guest.errors = R"({"kernel_log": [")" + line + R"("]})";
  const auto quote = "; the guest's kernel log: " + line;
  guest.transfers = {"Illegal instruction"};
  const auto transfer = verify();
  EXPECT_EQ(verdict(transfer), Outcome::notObservable);
  EXPECT_THAT(find(transfer, "data-host").seen, HasSubstr(quote));
  replace(R"("rdma": {)", R"("rdma": {"libibverbs": {"found": true}, "devices": []}, "others": {)");
  EXPECT_THAT(find(verify(), "rdma-device").seen, HasSubstr(quote)) << "no RDMA device";
  guest.inventory = "Segmentation fault";
  const auto inventory = verify();
  EXPECT_EQ(find(inventory, "inventory").outcome, Outcome::notObservable);
  EXPECT_THAT(find(inventory, "inventory").seen, HasSubstr(quote));
}

TEST_F(VerifyTest, KilledProbeIsNotObservableAndNamesTheSignal) {
  guest.transfers = {""};
  guest.transferExit = 137;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "data-host").seen, HasSubstr("code 137 (killed by signal 9)"));
  EXPECT_THAT(find(report, "data-host").remedy, HasSubstr("OOM killer"));
  guest.transfers = {""};
  guest.transferExit = 1;
  const auto failed = verify();
  EXPECT_THAT(find(failed, "data-host").seen, HasSubstr("code 1 and wrote no report"));
  EXPECT_THAT(find(failed, "data-host").remedy, Not(HasSubstr("OOM")));
}

// Other VFs come first, and their time is missing here.
TEST_F(VerifyTest, LoopbackEndsWhileItsReportCanStillBeRead) {
  plan.probeTimeout = std::chrono::hours(1);
  verify(50);
  ASSERT_THAT(guest.transferArguments, testing::SizeIs(2)) << "write and read";
  constexpr std::string_view option = R"("--deadline",")";
  for (const std::string& arguments : guest.transferArguments) {
    const auto at = arguments.find(option);
    ASSERT_NE(at, std::string::npos) << arguments;
    const int deadline = std::stoi(arguments.substr(at + option.size()));
    EXPECT_THAT(deadline, testing::AllOf(testing::Ge(10), testing::Le(40)))
        << "of the agent's 50 seconds";
  }
}

TEST_F(VerifyTest, UnreadableKernelLogHidesNoCause) {
  guest.inventory = "Segmentation fault";
  const std::string cause = find(verify(), "inventory").seen;
  EXPECT_NE(cause, "");
  guest.errors = "no JSON";
  const auto report = verify();
  EXPECT_EQ(find(report, "inventory").seen, cause);
  EXPECT_EQ(report.findings.back().key, "inventory");
}

// Its reason may be in the log: a driver that hangs, for example.
TEST_F(VerifyTest, ReadsKernelLogPastDeadline) {
  guest.errors = R"({"kernel_log": ["mlx5_core: error"]})";
  guest.files = {"/probe"};
  agent::Agent late(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(0));
  EXPECT_THROW(runProbe(late, {"/probe"}, {"inventory"}), Error);
  const auto after = readErrors(late, {"/probe"});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->kernelLog, std::vector<std::string>{"mlx5_core: error"});
  EXPECT_THROW(runProbe(late, {"/probe"}, {"inventory"}), Error) << "for the log only";
}

TEST_F(VerifyTest, JudgesPlacementOnHost) {
  plan.placement = HostPlacement{{{"rail0", 1}}, 2, {{0}}, {{0}}};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed) << "a warning";
  EXPECT_EQ(find(report, "numa-placement").outcome, Outcome::warning);
  EXPECT_EQ(find(report, "numa-placement").observer, Observer::host);
}

TEST_F(VerifyTest, ComparesNcclsGidIndexWithMapping) {
  EXPECT_EQ(find(verify(), "nccl-gid-index").key, "") << "nothing is configured";
  guest.transfers = {transferOf(10000), transferOf(10000)};
  hostSide.gidIndex = 0;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed) << "a warning";
  EXPECT_EQ(find(report, "nccl-gid-index").outcome, Outcome::warning);
}

TEST_F(VerifyTest, ComparesErrorCountersBeforeAndAfterRun) {
  replace(R"("link_layer": "Ethernet",)",
          R"("link_layer": "Ethernet", "counters": {"out_of_sequence": 2},)");
  guest.errors = R"({"rdma": {"devices": [{"name": "mlx5_0",
    "ports": [{"number": 1, "counters": {"out_of_sequence": 5}}]}]}})";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed) << "a warning";
  EXPECT_EQ(find(report, "rdma-errors").outcome, Outcome::warning);
  EXPECT_EQ(find(report, "rdma-errors").subject, "rail0");
  EXPECT_THAT(find(report, "rdma-errors").seen, HasSubstr("out_of_sequence 3"));
  guest.transfers = {transferOf(10000), transferOf(10000)};
  guest.errors = "no JSON";
  EXPECT_EQ(find(verify(), "rdma-errors").outcome, Outcome::waived) << "an older probe";
}

// A report would blame the guest.
TEST_F(VerifyTest, CancellationReturnsNoReport) {
  for (int calls = 0; calls < 12; ++calls) {
    int left = calls;
    agent::Agent agent(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(20), [&left] {
      if (left-- == 0) {
        throw Cancelled(SIGINT, "stopped");
      }
    });
    EXPECT_THROW(verifyGuest(agent, {"the probe", "vfpass-probe-1"}, plan, {traffic, {}, host}),
                 Cancelled)
        << calls;
  }
}

TEST_F(VerifyTest, DoesNotCopySameProbeAgain) {
  guest.files.insert("/var/lib/vfpass-probe/vfpass-probe-1");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  EXPECT_TRUE(guest.written.empty());
}

TEST_F(VerifyTest, UsesInstalledProbeWhenCopyingIsBlocked) {
  guest.forbidden = {"guest-file-open"};
  guest.files.insert("/usr/libexec/vfpass/vfpass-probe");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  guest.files.clear();
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "probe").seen, HasSubstr("does not allow guest-file-open"));
}

TEST_F(VerifyTest, ReportsFirstErrorWhenAgentDisappearsDuringCopy) {
  const auto scripted = guest.hypervisor.agent;
  bool gone = false;
  guest.hypervisor.agent = [&](const std::string& command) {
    const bool writes = command.find("guest-file-write") != std::string::npos;
    if (gone || writes) {
      const std::string why = gone ? "not available for now" : "no answer to the write in time";
      gone = true;
      throw Error(why, "");
    }
    return scripted(command);
  };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "probe").seen, HasSubstr("no answer to the write in time"));
  EXPECT_THAT(find(report, "probe").remedy, HasSubstr("/usr/libexec/vfpass/vfpass-probe"));
}

TEST_F(VerifyTest, BlockedAgentIsNotObservable) {
  guest.forbidden = {"guest-exec"};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "agent").remedy, HasSubstr("/etc/sysconfig/qemu-ga"));
}

TEST_F(VerifyTest, ReportsEachFailureAsItsOwnFinding) {
  const std::string sound = guest.inventory;
  const struct {
    const char* from;
    const char* to;
    const char* key;
  } broken[] = {
      {"52:54:00:aa:bb:cc", "52:54:00:aa:bb:cd", "mac"},
      {"\"state\": \"up\"", "\"state\": \"down\"", "link"},
      {"{\"found\": true, \"detail\": \"\"}", "{\"found\": false, \"detail\": \"no\"}",
       "rdma-core"},
      {"\"pci\": \"0000:01:00.0\", \"parent\"", "\"pci\": \"\", \"parent\"", "rdma-device"},
      {"\"done\": true", "\"done\": false", "rdma-opens"},
      {"4: ACTIVE", "1: DOWN", "port"},
      {"\"gid_index\": 3", "\"gid_index\": null", "gid"}};
  for (const auto& each : broken) {
    guest.inventory = sound;
    replace(each.from, each.to);
    const auto report = verify();
    EXPECT_EQ(verdict(report), Outcome::failed) << each.key;
    EXPECT_EQ(find(report, each.key).outcome, Outcome::failed) << each.key;
    EXPECT_FALSE(find(report, each.key).remedy.empty()) << each.key;
    EXPECT_EQ(find(report, "data-host").key, "") << "later checks are skipped: " << each.key;
  }
}

// Of what the mapping sets in the guest.
TEST_F(VerifyTest, RemediesNameTheVm) {
  plan.leases[0].domainName = "train0";
  hostSide.guestAddress = "192.168.100.10/24";
  const std::string sound = guest.inventory;
  for (const auto& [from, to, key] :
       {std::tuple{"\"state\": \"up\"", "\"state\": \"down\"", "link"},
        std::tuple{"\"gid_index\": 3", "\"gid_index\": null", "gid"}}) {
    guest.inventory = sound;
    replace(from, to);
    EXPECT_THAT(find(verify(), key).remedy, HasSubstr("run `vfpass guest-setup train0`, which"));
  }
}

constexpr const char* confined = "system_u:system_r:virt_qemu_ga_t:s0";

// The RHEL family: the agent's programs cannot create the probe's directory.
TEST_F(VerifyTest, ConfinedAgentIsNotObservableWithBooleanAndFileType) {
  guest.context = std::string(confined) + " 1";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "probe").seen, HasSubstr("Permission denied"));
  EXPECT_THAT(find(report, "probe").seen, HasSubstr(confined));
  EXPECT_THAT(find(report, "probe").remedy,
              HasSubstr("setsebool -P virt_qemu_ga_run_unconfined on"));
  EXPECT_THAT(find(report, "probe").remedy, HasSubstr("-t virt_qemu_ga_unconfined_exec_t"));
}

TEST_F(VerifyTest, BlamesSelinuxOnlyWhereItConfines) {
  for (const char* context :
       {"system_u:system_r:virt_qemu_ga_t:s0 0", "system_u:system_r:virt_qemu_ga_unconfined_t:s0 1",
        "unconfined", "\x1b[31m:x:virt_qemu_ga_t 1"}) {
    guest.context = context;
    const auto report = verify();
    EXPECT_EQ(verdict(report), Outcome::notObservable) << context;
    EXPECT_THAT(find(report, "probe").remedy, Not(HasSubstr("setsebool"))) << context;
  }
}

// An installed probe runs, but cannot open devices.
TEST_F(VerifyTest, FailuresOfConfinedProbeAreNotObservable) {
  guest.context = std::string(confined) + " 1";
  guest.files.insert("/usr/libexec/vfpass/vfpass-probe");
  const std::string sound = guest.inventory;
  const auto selinux = [](const std::string& context, const std::string& enforcing) {
    return R"("selinux": {"context": ")" + context + R"(", "enforcing": )" + enforcing +
           R"(}, "netdevs")";
  };
  const struct {
    std::string selinux;
    Outcome outcome;
  } cases[] = {{selinux(confined, "true"), Outcome::notObservable},
               {selinux(confined, "null"), Outcome::notObservable},
               {selinux(confined, "false"), Outcome::failed},
               {selinux("system_u:system_r:virt_qemu_ga_unconfined_t:s0", "true"), Outcome::failed},
               {"\"netdevs\"", Outcome::failed}};
  for (const auto& each : cases) {
    guest.inventory = sound;
    replace("\"netdevs\"", each.selinux);
    replace("\"done\": true", "\"done\": false");
    const auto report = verify();
    EXPECT_EQ(verdict(report), each.outcome) << each.selinux;
    EXPECT_EQ(find(report, "rdma-opens").outcome, each.outcome) << each.selinux;
  }
}

TEST_F(VerifyTest, ConfinementExcusesNeitherHostsFindingsNorWrongBytes) {
  guest.files.insert("/usr/libexec/vfpass/vfpass-probe");
  replace("\"netdevs\"", R"("selinux": {"context": "system_u:system_r:virt_qemu_ga_t:s0",
                          "enforcing": true}, "netdevs")");
  guest.transfers = {R"({"passed": false, "runs": []})"};
  EXPECT_EQ(find(verify(), "data-host").outcome, Outcome::failed);
  hostSide.hold.inLiveXml = false;
  EXPECT_EQ(verdict(verify()), Outcome::failed);
}

TEST_F(VerifyTest, NamesFunctionWithoutDriver) {
  guest.inventory = R"({"pci": [{"address": "0000:01:00.0", "class": 131072, "driver": ""}]})";
  const auto report = verify();
  EXPECT_EQ(find(report, "driver").outcome, Outcome::failed);
  EXPECT_THAT(find(report, "driver").seen, HasSubstr("0000:01:00.0"));
}

TEST_F(VerifyTest, FindsVfByPciIdsInAnyClass) {
  guest.inventory = R"({"pci": [
    {"address": "0000:00:1f.3", "class": 787968, "vendor": 32902, "device": 10544, "driver": ""},
    {"address": "0000:01:00.0", "class": 67586, "vendor": 5555, "device": 4126, "driver": ""}]})";
  EXPECT_EQ(find(verify(), "mac").outcome, Outcome::failed);
  hostSide.vendor = 5555;
  hostSide.device = 4126;
  EXPECT_EQ(find(verify(), "driver").seen, "0000:01:00.0 without a driver");
}

TEST_F(VerifyTest, RefusesProbeWithOtherProtocol) {
  guest.hello = R"({"protocol": 2})";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "probe").seen, HasSubstr("incompatible protocol version"));
  EXPECT_FALSE(find(report, "probe").remedy.empty());
}

TEST_F(VerifyTest, FindsInfinibandPortByGuid) {
  vfOf(plan.leases.front()).infiniband = true;
  vfOf(plan.leases.front()).settings = {};
  vfOf(plan.leases.front()).settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cc");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  vfOf(plan.leases.front()).settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cd");
  EXPECT_EQ(find(verify(), "rdma-device").outcome, Outcome::failed);
}

TEST_F(VerifyTest, NamesSubnetManagerAndPartitionOfInfinibandPort) {
  vfOf(plan.leases.front()).infiniband = true;
  vfOf(plan.leases.front()).settings = {};
  vfOf(plan.leases.front()).settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cc");
  const std::string sound = guest.inventory;
  const auto withPort = [&](const std::string& members) {
    guest.inventory = sound;
    guest.transfers = {transferOf(10000), transferOf(10000)};
    replace(R"("state": "4: ACTIVE")", members);
    return verify();
  };
  auto report = withPort(R"("state": "2: INIT", "lid": "0x0", "sm_lid": "0x0")");
  EXPECT_EQ(find(report, "port").outcome, Outcome::failed);
  EXPECT_EQ(find(report, "port").seen,
            "2: INIT, LID 0, subnet manager's LID 0: no subnet manager has activated it");
  EXPECT_THAT(find(report, "port").remedy, HasSubstr("virt_enabled 2"));
  report = withPort(R"("state": "4: ACTIVE", "lid": "0x0", "sm_lid": "0x1")");
  EXPECT_THAT(find(report, "port").seen, HasSubstr("the subnet manager has assigned no LID"));
  EXPECT_EQ(verdict(report), Outcome::failed);
  report = withPort(R"("state": "1: DOWN", "lid": "0x0", "sm_lid": "0x0")");
  EXPECT_THAT(find(report, "port").remedy, HasSubstr("link-state"));
  report = withPort(
      R"("state": "4: ACTIVE", "lid": "0x7", "sm_lid": "0x1", "p_keys": ["0x7fff", "0x8001"])");
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(find(report, "port").seen, "4: ACTIVE, LID 7, subnet manager's LID 1");
  EXPECT_EQ(find(report, "p-key").seen, "0x7fff, 0x8001");
  report = withPort(R"("state": "4: ACTIVE", "lid": "0x7", "p_keys": ["0x7fff"])");
  EXPECT_EQ(find(report, "p-key").outcome, Outcome::warning);
  EXPECT_THAT(find(report, "p-key").seen, HasSubstr("limited member"));
  report = withPort(R"("state": "4: ACTIVE", "lid": "0x7", "p_keys": ["0x8000", "lie", 5])");
  EXPECT_EQ(find(report, "p-key").outcome, Outcome::failed);
  report = withPort(R"("state": "4: ACTIVE", "lid": "7", "p_keys": 5)");
  EXPECT_EQ(find(report, "p-key").key, "") << "a probe that reports none";
  EXPECT_EQ(find(report, "port").seen, "4: ACTIVE, LID unknown, subnet manager's LID unknown");
}

TEST_F(VerifyTest, FailsWhenCountersDoNotMove) {
  traffic = [](const Lease&) { return VfTraffic{5, 5, 5, 5}; };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_EQ(find(report, "counters").outcome, Outcome::failed);
}

// The guest reports all that it moved, which may be more than was requested.
TEST_F(VerifyTest, FailsWhenCountersMoveLessThanGuestClaims) {
  guest.transfers = {transferOf(20000), transferOf(10000)};
  EXPECT_EQ(find(verify(), "counters").outcome, Outcome::failed);
  guest.transfers = {transferOf(UINT64_MAX), transferOf(10000)};
  EXPECT_EQ(find(verify(), "counters").outcome, Outcome::failed);
}

TEST_F(VerifyTest, ReportsDurationOfMeasurement) {
  const auto measured = [](const char* reached) {
    return R"({"passed": true, "runs": [{"settings": {"minimum_milliseconds": 500},
      "owners": {"target": {"bytes_checked": 10000}}, "bandwidth": {"gigabits_per_second": 97,
      "passes": 375, "seconds": 0.52, "minimum_reached": )" +
           std::string(reached) + "}}]}";
  };
  guest.transfers = {measured("true"), transferOf(10000)};
  EXPECT_EQ(find(verify(), "data-host").seen, "write: 97 Gb/s, median of 375 passes, 0.52 s");
  guest.transfers = {measured("false"), transferOf(10000)};
  EXPECT_THAT(find(verify(), "data-host").seen, HasSubstr("(time limit reached)"));
}

TEST_F(VerifyTest, DoesNotProlongTransfersOfSoftRoce) {
  verify();
  EXPECT_THAT(guest.transferArguments.at(0), Not(HasSubstr("--minimum-time")));
  replace(R"("parent": "")", R"("parent": "eth1")");
  guest.transfers = {transferOf(10000), transferOf(10000)};
  verify();
  EXPECT_THAT(guest.transferArguments.at(2), HasSubstr(R"("--minimum-time","0")"));
}

/// A VM with a GPU that supports DMA-BUF.
class VerifyGpuTest : public VerifyTest {
 protected:
  VerifyGpuTest() {
    plan.gpuTest = GpuTest::wanted;
    plan.latency = false;
    replace(
        R"("gpus": {"libcuda": {"found": false, "detail": "libcuda.so.1 is missing"}, "devices": []})",
        R"("distances": [{"nic": "0000:01:00.0", "gpu": "0000:05:00.0", "distance": "PIX"}],
               "gpus": {"libcuda": {"found": true}, "devices": [{"index": 0, "name": "NVIDIA H200",
               "pci": "00000000:05:00.0", "dma_buf_supported": 1}]})");
    traffic = [this](const Lease&) { return VfTraffic{0, moved += 30000, 0, 0}; };
    const std::string both =
        R"({"passed": true, "runs": [)" + run("host", "host") + "," + run("gpu", "gpu") + "]}";
    guest.transfers.insert(guest.transfers.end(), {both, both});
  }

  static std::vector<std::string> outcomesOf(const VerifyReport& report, const std::string& key) {
    std::vector<std::string> found;
    for (const Finding& each : report.findings) {
      if (each.key == key) {
        found.emplace_back(toString(each.outcome));
      }
    }
    return found;
  }

  std::uint64_t moved = 0;
};

TEST_F(VerifyGpuTest, MovesDataBetweenGpuAndHostMemoryInBothDirections) {
  for (const char* initiator : {"gpu", "gpu", "host", "host"}) {
    guest.transfers.push_back(one(initiator, initiator == std::string("gpu") ? "host" : "gpu"));
  }
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(outcomesOf(report, "data-gpu-to-host"), testing::ElementsAre("passed", "passed"));
  EXPECT_THAT(outcomesOf(report, "data-host-to-gpu"), testing::ElementsAre("passed", "passed"));
  EXPECT_THAT(find(report, "data-gpu-to-host").seen, HasSubstr("dma-buf"));
  ASSERT_EQ(guest.transferArguments.size(), 8U);
  EXPECT_THAT(guest.transferArguments[4],
              HasSubstr(R"("--initiator-memory","gpu","--target-memory","host")"));
  EXPECT_THAT(guest.transferArguments[7],
              HasSubstr(R"("--initiator-memory","host","--target-memory","gpu")"));
}

constexpr const char* wrongAllReduce =
    "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 100\n";

// Its cause appears in the log after the counters are read.
TEST_F(VerifyGpuTest, QuotesKernelLogThatNcclTestsCaused) {
  for (const char* initiator : {"gpu", "gpu", "host", "host"}) {
    guest.transfers.push_back(one(initiator, initiator == std::string("gpu") ? "host" : "gpu"));
  }
  guest.tools = "all_reduce_perf\n";
  guest.toolOutput = {{"all_reduce_perf", wrongAllReduce}};
  guest.errors = R"({"kernel_log": ["nvidia 0000:05:00.0: old error"]})";
  std::string afterwards = R"({"kernel_log": ["NVRM: Xid (PCI:0000:05:00): 79"]})";
  const auto scripted = guest.hypervisor.agent;
  guest.hypervisor.agent = [&](const std::string& command) {
    const auto request = nlohmann::json::parse(command);
    if (request.contains("arguments") &&
        request["arguments"].value("path", "") == "all_reduce_perf") {
      guest.errors = afterwards;
    }
    return scripted(command);
  };
  const auto transfers = guest.transfers;
  const std::string before = guest.errors;
  const auto report = verify();
  EXPECT_EQ(find(report, "nccl-tests").outcome, Outcome::failed);
  EXPECT_THAT(find(report, "nccl-tests").seen, HasSubstr("Xid (PCI:0000:05:00): 79"));
  guest.transfers = transfers;
  guest.errors = before;
  afterwards = "no JSON";
  EXPECT_THAT(find(verify(), "nccl-tests").seen, HasSubstr("old error"))
      << "the log as it was last read";
}

TEST_F(VerifyGpuTest, NcclTestsRunOverGpusOfCuda) {
  replace(R"("dma_buf_supported": 1}])",
          R"("dma_buf_supported": 1}, {"index": null, "name": null, "pci": "0000:06:00.0"}])");
  guest.tools = "all_reduce_perf\n";
  guest.toolOutput = {{"all_reduce_perf", wrongAllReduce}};
  EXPECT_THAT(find(verify(), "nccl-tests").seen, HasSubstr("between 1 GPUs"));
}

TEST_F(VerifyGpuTest, ProbeThatUsesOtherMemoryFails) {
  for (int transfer = 0; transfer < 4; ++transfer) {
    guest.transfers.push_back(one("host", "host"));
  }
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_THAT(outcomesOf(report, "data-gpu-to-host"), testing::ElementsAre("failed", "failed"));
  EXPECT_THAT(outcomesOf(report, "data-host-to-gpu"), testing::ElementsAre("failed", "failed"));
}

TEST_F(VerifyGpuTest, MixedMemoryThatIsNotTriedHasNotPassed) {
  guest.transfers.resize(2);
  guest.transfers.emplace_back(R"({"error": "cannot register GPU memory"})");
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_THAT(outcomesOf(report, "data-gpu-to-host"), testing::ElementsAre("not observable"));
  EXPECT_THAT(outcomesOf(report, "data-host-to-gpu"), testing::ElementsAre("not observable"));
}

TEST_F(VerifyGpuTest, WrongByteOfGpuIsNamedWithItsPlaceAndPath) {
  const std::string wrong =
      R"({"owners": {"target": {"corruptions": [{"damage": "flipped", "message": 7, "offset": 99}]}},
        "passed": false, "memory": {"initiator": {"kind": "gpu"}, "target": {"kind": "host"}}})";
  const auto sound = guest.transfers;
  guest.transfers[2] = R"({"passed": false, "runs": [{"passed": true},)" + wrong + "]}";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_EQ(find(report, "data-host").outcome, Outcome::passed);
  EXPECT_EQ(find(report, "data-gpu").outcome, Outcome::failed);
  EXPECT_EQ(find(report, "data-gpu").seen, "flipped in message 7 at offset 99");
  guest.transfers = sound;
  guest.transfers.push_back(R"({"passed": false, "runs": [)" + wrong + "]}");
  for (const char* initiator : {"gpu", "host", "host"}) {
    guest.transfers.push_back(one(initiator, initiator == std::string("gpu") ? "host" : "gpu"));
  }
  const auto mixed = verify();
  EXPECT_EQ(find(mixed, "data-gpu").outcome, Outcome::passed);
  EXPECT_EQ(find(mixed, "data-gpu-to-host").seen, "flipped in message 7 at offset 99");
  EXPECT_EQ(find(mixed, "data-host-to-gpu").outcome, Outcome::passed);
}

/// A report of the preset `sizes` with this number of runs.
nlohmann::json sizesReport(unsigned largestPower = 24) {
  nlohmann::json runs = nlohmann::json::array();
  for (const char* operation : {"write", "read"}) {
    for (unsigned power = 1; power <= largestPower; ++power) {
      const std::uint64_t bytes = std::uint64_t{1} << power;
      runs.push_back(
          {{"passed", true},
           {"settings", {{"operation", operation}, {"bytes", bytes}}},
           {"owners", {{"target", {{"bytes_checked", bytes}}}}},
           {"memory", {{"initiator", {{"kind", "host"}}}, {"target", {{"kind", "host"}}}}},
           {"bandwidth", {{"gigabits_per_second", power}}}});
    }
  }
  return {{"passed", true}, {"runs", runs}};
}

TEST_F(VerifyTest, MeasuresAllSizesIfRequested) {
  plan.sizes = true;
  guest.transfers.push_back(sizesReport().dump());
  traffic = [this](const Lease&) {
    return VfTraffic{0, guest.transferArguments.size() << 27U, 0, 0};
  };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(find(report, "sizes-host").seen, "48 runs, up to 24 Gb/s");
  EXPECT_EQ(std::ranges::count(report.figures, sizeFigures, &Figure::source), 48);
  EXPECT_THAT(guest.transferArguments.at(2), HasSubstr(R"("--preset","sizes")"));
  EXPECT_THAT(guest.transferArguments.at(2), Not(HasSubstr("--iterations")));
}

TEST_F(VerifyTest, FailsForMissingSizeOrBytes) {
  plan.sizes = true;
  auto repeated = sizesReport();
  repeated["runs"][3] = repeated["runs"][4];
  auto unchecked = sizesReport();
  unchecked["runs"][3]["owners"]["target"]["bytes_checked"] = 1;
  auto onGpu = sizesReport();
  onGpu["runs"][3]["memory"]["target"]["kind"] = "gpu";
  for (const auto& lie : {repeated, unchecked, onGpu, sizesReport(23)}) {
    guest.transfers = {transferOf(10000), transferOf(10000), lie.dump()};
    const auto report = verify();
    EXPECT_EQ(find(report, "sizes-host").outcome, Outcome::failed);
    EXPECT_EQ(std::ranges::count(report.figures, sizeFigures, &Figure::source), 0);
  }
}

TEST_F(VerifyTest, IsNotObservableWithoutCounters) {
  traffic = [](const Lease&) { return std::nullopt; };
  EXPECT_EQ(verdict(verify()), Outcome::notObservable);
}

TEST_F(VerifyTest, FailsForWrongOrUncheckedBytes) {
  guest.transfers = {R"({"passed": false, "runs": [{"owners": {"target": {"corruptions": [
    {"damage": "flipped", "message": 7, "offset": 99}]}}}]})"};
  const auto corrupted = verify();
  EXPECT_EQ(verdict(corrupted), Outcome::failed);
  EXPECT_EQ(find(corrupted, "data-host").seen, "flipped in message 7 at offset 99");
  guest.transfers = {transferOf(9999)};
  EXPECT_EQ(verdict(verify()), Outcome::failed) << "one byte was not checked";
}

TEST_F(VerifyTest, ComparesBandwidthWithShareOfLowestLimit) {
  plan.minimumShare = 0.9;
  // PCI Express 3.0 x16 in loopback: 72.5 Gb/s.
  guest.transfers = {transferOf(10000, 66), transferOf(10000, 50)};
  auto report = verify();
  EXPECT_EQ(find(report, "bandwidth").outcome, Outcome::passed);
  EXPECT_NEAR(report.figures.front().limit.value_or(0), 72.5, 0.1);
  guest.transfers = {transferOf(10000, 50), transferOf(10000, 65)};
  report = verify();
  EXPECT_EQ(find(report, "bandwidth").outcome, Outcome::failed);
  EXPECT_THAT(find(report, "bandwidth").expected, HasSubstr("PCI Express 115"));
  replace(R"("parent": "")", R"("parent": "eth1")");
  guest.transfers = {transferOf(10000, 1), transferOf(10000, 1)};
  EXPECT_EQ(find(verify(), "bandwidth").outcome, Outcome::waived)
      << "the rate of SoftRoCE is meaningless";
}

TEST_F(VerifyTest, FigureAboveLimitShowsThatLimitIsWrong) {
  // 72.5 Gb/s in loopback; more than 110 % of that.
  for (const auto share : {std::optional<double>(0.9), std::optional<double>()}) {
    plan.minimumShare = share;
    guest.transfers = {transferOf(10000, 386), transferOf(10000, 50)};
    const auto report = verify();
    EXPECT_EQ(find(report, "bandwidth").outcome, Outcome::warning);
    EXPECT_THAT(find(report, "bandwidth").seen, HasSubstr("the limit is wrong"));
    EXPECT_THAT(find(report, "bandwidth").seen, Not(HasSubstr("532 %")));
    EXPECT_THAT(find(report, "bandwidth").remedy, HasSubstr("an estimate from another card"));
  }
  guest.transfers = {transferOf(10000, 78), transferOf(10000, 50)};
  EXPECT_EQ(find(verify(), "bandwidth").key, "") << "108 %: not measured exactly";
}

TEST_F(VerifyTest, WarnsOfDegradedLinkOfHost) {
  EXPECT_EQ(find(verify(), "pcie-link").key, "");
  guest.transfers = {transferOf(10000), transferOf(10000)};
  hostSide.degraded = "the link of 0000:0c:00.0 runs at Gen3 x4 of Gen5 x16";
  const auto report = verify();
  EXPECT_EQ(find(report, "pcie-link").outcome, Outcome::warning);
  EXPECT_EQ(find(report, "pcie-link").seen, hostSide.degraded);
  EXPECT_EQ(find(report, "pcie-link").observer, Observer::host);
  EXPECT_EQ(verdict(report), Outcome::passed);
}

TEST_F(VerifyTest, PrefersPortRateOfHost) {
  plan.minimumShare = 0.9;
  hostSide.portRate = 200000;
  hostSide.link = {16000, 16};
  replace("100 Gb/sec", "1 Gb/sec");
  EXPECT_THAT(find(verify(), "bandwidth").expected, HasSubstr("port after headers 196"));
}

TEST_F(VerifyTest, DoesNotVerifyDeviceThatDomainDoesNotHold) {
  const struct {
    DeviceHold hold;
    Outcome outcome;
    const char* seen;
  } cases[] = {
      {{false, "vfio-pci", true, "process 7"}, Outcome::failed, "no hostdev"},
      {{true, "mlx5_core", true, "process 7"}, Outcome::failed, "bound to mlx5_core"},
      {{true, "", false, ""}, Outcome::failed, "no driver"},
      {{true, "vfio-pci", false, "process 8 (other)"}, Outcome::failed, "process 8 (other)"},
      {{true, "vfio-pci", false, ""}, Outcome::notObservable, "no process"}};
  for (const auto& each : cases) {
    hostSide.hold = each.hold;
    guest.transfers = {transferOf(10000), transferOf(10000)};
    const auto report = verify();
    const auto& found = find(report, "device-host");
    EXPECT_EQ(found.outcome, each.outcome) << each.seen;
    EXPECT_THAT(found.seen, HasSubstr(each.seen));
    EXPECT_FALSE(found.remedy.empty());
    EXPECT_EQ(verdict(report), each.outcome);
    EXPECT_EQ(find(report, "mac").key.empty(), each.outcome == Outcome::failed)
        << "later checks are skipped";
  }
}

TEST_F(VerifyTest, HostThatCannotBeReadIsItsOwnFindingAndHidesNothing) {
  host = [](const Lease&) -> HostSide { throw Error("libvirt: connection lost", "start it"); };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_EQ(find(report, "device-host").subject, "rail0");
  EXPECT_EQ(find(report, "device-host").observer, Observer::host);
  EXPECT_EQ(find(report, "device-host").remedy, "start it");
  EXPECT_EQ(find(report, "data-host").outcome, Outcome::passed);
}

// It would be tested twice, and the other VF not at all.
TEST_F(VerifyTest, OneRdmaDeviceForTwoVfsFails) {
  Lease other = plan.leases.front();
  other.entry = "rail1";
  vfOf(other).settings.mac = parseMacAddress("52:54:00:aa:bb:dd");
  plan.leases.push_back(other);
  replace(R"("netdevs": [)",
          R"("netdevs": [{"name": "eth2", "mac": "52:54:00:aa:bb:dd", "state": "up",
             "pci": "0000:01:00.0", "driver": "mlx5_core", "mtu": 1500}, )");
  const auto report = verify();
  const auto failed = std::ranges::count_if(report.findings, [](const Finding& each) {
    return each.key == "rdma-device" && each.outcome == Outcome::failed;
  });
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(find(report, "rdma-device").subject, "rail0");
  EXPECT_EQ(find(report, "rdma-device").seen, "mlx5_0, which the guest also reports for rail1");
  EXPECT_THAT(guest.transferArguments, testing::IsEmpty());
  EXPECT_EQ(find(report, "gid").key, "") << "no check after the first failed one";
}

TEST_F(VerifyTest, IsNotObservableWhenAnotherVfMovesAsMuch) {
  Lease other = plan.leases.front();
  other.entry = "rail1";
  vfOf(other).settings.mac = parseMacAddress("52:54:00:aa:bb:dd");
  plan.leases.push_back(other);
  const auto counts = traffic;
  traffic = [&](const Lease& lease) {
    return lease.entry == "rail1" ? VfTraffic{9, 9, 0, 0} : counts(lease);
  };
  EXPECT_EQ(find(verify(), "other-vfs").outcome, Outcome::passed);
  traffic = counts;
  guest.transfers = {transferOf(10000), transferOf(10000)};
  const auto report = verify();
  EXPECT_EQ(find(report, "other-vfs").outcome, Outcome::notObservable);
  EXPECT_THAT(find(report, "other-vfs").seen, HasSubstr("rail1"));
}

TEST_F(VerifyTest, TestsRelaxedOrderingOnHardwareOnly) {
  plan.relaxedOrdering = RelaxedOrdering::automatic;
  guest.transfers = {transferOf(10000, 60), transferOf(10000, 50), transferOf(10000, 90),
                     transferOf(10000, 80)};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(find(report, "relaxed-ordering").seen, HasSubstr("write 60, relaxed 90"));
  ASSERT_EQ(guest.transferArguments.size(), 4U);
  EXPECT_THAT(guest.transferArguments[1], Not(HasSubstr("--relaxed-ordering")));
  EXPECT_THAT(guest.transferArguments[2], HasSubstr("--relaxed-ordering"));
  replace(R"("parent": "")", R"("parent": "eth1")");
  guest.transferArguments.clear();
  guest.transfers = {transferOf(10000), transferOf(10000)};
  EXPECT_EQ(find(verify(), "relaxed-ordering").key, "");
  EXPECT_EQ(guest.transferArguments.size(), 2U);
}

TEST_F(VerifyTest, WarnsAboutMtuAndGidType) {
  hostSide.guestMtu = 9000;
  auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(find(report, "mtu").outcome, Outcome::warning);
  EXPECT_THAT(find(report, "mtu").seen, HasSubstr("eth1 1500, RDMA 4096"));
  EXPECT_THAT(find(report, "mtu").remedy, HasSubstr("mtu 9000"));
  EXPECT_EQ(find(report, "gid-type").outcome, Outcome::passed);
  EXPECT_THAT(find(report, "gid-type").seen, HasSubstr("NCCL_IB_GID_INDEX=3"));
  hostSide.guestMtu = 1500;
  replace("\"type\": \"RoCE v2\"", "\"type\": \"RoCE v1\"");
  guest.transfers = {transferOf(10000), transferOf(10000)};
  report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(find(report, "mtu").outcome, Outcome::passed);
  EXPECT_EQ(find(report, "gid-type").outcome, Outcome::warning);
  replace("0000:0000:0000:0000:0000:ffff:", "fe80:0000:0000:0000:5054:00ff:");
  replace("\"type\": \"RoCE v1\"", "\"type\": \"RoCE v2\"");
  replace("\"4096\"", "\"1024\"");
  guest.transfers = {transferOf(10000), transferOf(10000)};
  report = verify();
  EXPECT_THAT(find(report, "gid-type").seen, HasSubstr("link-local"));
  EXPECT_THAT(find(report, "mtu").seen, HasSubstr("0.909"));
  EXPECT_EQ(find(report, "mtu").outcome, Outcome::warning);
}

TEST_F(VerifyTest, ReportsFiguresOfGuestTools) {
  EXPECT_EQ(find(verify(), "perftest").outcome, Outcome::waived);
  guest.tools = "ib_write_bw\nrm\nib_read_bw\n";
  guest.toolOutput = {
      {"ib_write_bw",
       " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
       " 1000       100            0.00               96.50              0.001\n"},
      {"ib_read_bw", "Couldn't connect\n"}};
  guest.transfers = {transferOf(10000), transferOf(10000)};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed) << "a failing tool does not fail the verification";
  EXPECT_EQ(find(report, "perftest").outcome, Outcome::warning);
  EXPECT_EQ(find(report, "perftest").seen,
            "ib_write_bw 96.5 Gb/s; ib_read_bw reported no figure: Couldn't connect");
  const auto figure = std::ranges::find(report.figures, "ib_write_bw", &Figure::source);
  ASSERT_NE(figure, report.figures.end());
  EXPECT_EQ(figure->checkedBytes, 0U) << "perftest verifies no data";
  EXPECT_THAT(guest.commands, Not(Contains("rm")));
}

TEST_F(VerifyTest, FailsForMissingUncheckedOrImpossibleLatency) {
  const std::string sound = guest.latency;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"median\": 2.5", "\"x\": 1"},
           {"\"bytes_checked\": 80", "\"x\": 1"},
           {"\"operation\": \"read\"", "\"x\": 1"},
           {"\"operation\": \"read\"", "\"operation\": \"send\""},  // twice the same
           {"\"p99\": 4", "\"p99\": 2"},
           {"\"p99\": 4", "\"p99\": 1e300"}}) {
    guest.latency.replace(guest.latency.find(from), from.size(), to);
    guest.transfers = {transferOf(10000), transferOf(10000)};
    EXPECT_EQ(find(verify(), "latency-host").outcome, Outcome::failed) << to;
    guest.latency = sound;
  }
}

TEST_F(VerifyTest, FailsForFigureThatNoTransferHas) {
  for (const double lie : {0.0, -97.0, 1e300}) {
    guest.transfers = {transferOf(10000, lie), transferOf(10000)};
    const auto report = verify();
    EXPECT_EQ(find(report, "data-host").seen, "no plausible bandwidth") << lie;
    EXPECT_TRUE(report.figures.empty()) << lie;
  }
}

// The bytes are right, but they are those of a read, or of other memory.
TEST_F(VerifyTest, FailsForReportOfAnotherTransfer) {
  for (const auto& [member, reason] : std::vector<std::pair<std::string, std::string>>{
           {R"("settings": {"operation": "read"})", "the probe reported another operation"},
           {R"("memory": {"target": {"kind": "gpu"}})",
            "the probe reported other memory than requested"}}) {
    std::string other = transferOf(10000);
    other.insert(other.find("\"owners\""), member + ", ");
    guest.transfers = {other, transferOf(10000)};
    EXPECT_EQ(find(verify(), "data-host").seen, reason);
  }
}

TEST_F(VerifyTest, ShowsLongLatencyWithoutExponent) {
  const std::string sound = "\"median\": 2.5, \"p99\": 4";
  const auto at = guest.latency.find(sound);
  ASSERT_NE(at, std::string::npos);
  guest.latency.replace(at, sound.size(), "\"median\": 4010, \"p99\": 14600");
  EXPECT_THAT(find(verify(), "latency-host").seen, HasSubstr("read 4010 us, 99 % within 14.6 ms"));
}

TEST_F(VerifyTest, FailsWithoutWantedGpu) {
  EXPECT_EQ(find(verify(), "gpu").outcome, Outcome::waived);
  plan.gpuTest = GpuTest::wanted;
  guest.transfers = {transferOf(10000), transferOf(10000)};
  EXPECT_EQ(find(verify(), "gpu").outcome, Outcome::failed);
}

std::string besideHostOf(double host, double gpu) {
  const auto run = [](const std::string& kind, double gigabits) {
    return R"({"owners": {"initiator": {"bytes_checked": 0}, "target": {"bytes_checked": 10000}},
      "memory": {"initiator": {"kind": ")" +
           kind + R"("}, "target": {"kind": ")" + kind +
           R"(", "registration": "DMA-BUF"}}, "bandwidth": {"gigabits_per_second": )" +
           std::to_string(gigabits) + "}}";
  };
  return R"({"passed": true, "runs": [)" + run("host", host) + "," + run("gpu", gpu) + "]}";
}

/// A guest with one VF and two equally distant leased GPUs.
class VerifyLeasedGpusTest : public VerifyTest {
 protected:
  VerifyLeasedGpusTest() {
    replace(
        R"("gpus": {"libcuda": {"found": false, "detail": "libcuda.so.1 is missing"}, "devices": []})",
        R"("pci": [
      {"address": "0000:05:00.0", "path": "/sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0"},
      {"address": "0000:06:00.0", "path": "/sys/devices/pci0000:00/0000:00:03.0/0000:06:00.0"}],
    "gpus": {"libcuda": {"found": true}, "devices": [
      {"index": 0, "name": "NVIDIA H200", "pci": "00000000:05:00.0", "dma_buf_supported": 1},
      {"index": 1, "name": "NVIDIA H200", "pci": "00000000:06:00.0", "dma_buf_supported": 1}]})");
    for (const char* slot : {"0000:00:02.0", "0000:00:03.0"}) {
      LeasedGpu gpu{"gpu" + std::to_string(plan.gpus.size()),
                    {*parsePciAddress(slot), *parsePciAddress("0000:09:00.0")},
                    {}};
      gpu.paths["rail0"].distance = "PHB";
      plan.gpus.push_back(gpu);
    }
    plan.latency = false;
    traffic = [this](const Lease&) {
      const auto sent = std::ranges::count(guest.commands, "loopback") * 22000;
      return VfTraffic{0, static_cast<std::uint64_t>(sent), 0, 0};
    };
    guest.transfers = {transferOf(10000), transferOf(10000)};
    for (const int gigabits : {96, 50}) {
      guest.transfers.insert(
          guest.transfers.end(),
          {besideHostOf(97, gigabits), besideHostOf(97, gigabits), one("gpu", "host"),
           one("gpu", "host"), one("host", "gpu"), one("host", "gpu")});
    }
  }

  static constexpr std::size_t firstOfSecondGpu = 8;
};

TEST_F(VerifyLeasedGpusTest, TestsEveryLeasedGpuWithoutBeingAsked) {
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  ASSERT_EQ(guest.transferArguments.size(), 14U);
  EXPECT_THAT(guest.transferArguments[0], Not(HasSubstr("--gpu")));
  EXPECT_THAT(guest.transferArguments[firstOfSecondGpu - 1],
              HasSubstr(R"("--gpu","0000:05:00.0")"));
  EXPECT_THAT(guest.transferArguments[firstOfSecondGpu], HasSubstr(R"("--gpu","0000:06:00.0")"));
  EXPECT_EQ(std::ranges::count(report.findings, "gpu-tested", &Finding::key), 2);
  EXPECT_EQ(report.figures.back().gpu, "gpu1");
  const auto second = std::ranges::find_if(report.figures, [](const Figure& figure) {
    return figure.gpu == "gpu1" && figure.memory == "gpu";
  });
  ASSERT_NE(second, report.figures.end());
  EXPECT_EQ(second->gigabitsPerSecond, 50);
}

TEST_F(VerifyLeasedGpusTest, FailsForDeadSecondGpu) {
  guest.transfers[firstOfSecondGpu] =
      R"({"passed": false, "error": "cannot create a context on GPU 0000:06:00.0",
                           "runs": []})";
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_THAT(find(report, "gpu-tested").seen, HasSubstr("tested with rail0"));
  const auto second = std::ranges::find(report.findings, "gpu1", &Finding::subject);
  ASSERT_NE(second, report.findings.end());
  EXPECT_EQ(second->outcome, Outcome::failed);
}

TEST_F(VerifyLeasedGpusTest, JudgesBandwidthOfEachGpuAlone) {
  plan.minimumShare = 0.8;
  hostSide.link = {16000, 16};
  const auto report = verify();
  std::vector<Outcome> outcomes;
  for (const Finding& finding : report.findings) {
    if (finding.key == "bandwidth-gpu") {
      outcomes.push_back(finding.outcome);
    }
  }
  EXPECT_THAT(outcomes, testing::ElementsAre(Outcome::passed, Outcome::failed));
}

TEST_F(VerifyLeasedGpusTest, ExclusionIsStatedAndTestsNoGpu) {
  plan.gpuTest = GpuTest::excluded;
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(guest.transferArguments.size(), 2U);
  EXPECT_EQ(find(report, "gpu-path").outcome, Outcome::waived);
  EXPECT_THAT(find(report, "gpu-path").seen, HasSubstr("excluded by verify: {paths: [host]}"));
  EXPECT_EQ(find(report, "gpu-tested").key, "");
}

TEST_F(VerifyLeasedGpusTest, UntriedGpuPathIsNeverPassed) {
  for (LeasedGpu& gpu : plan.gpus) {
    gpu.guestPath.clear();
  }
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "gpu-tested").seen, HasSubstr("not tested"));
}

TEST_F(VerifyLeasedGpusTest, GpusThatAreNotFoundFailDespiteOthers) {
  for (LeasedGpu& gpu : plan.gpus) {
    gpu.guestPath.front() = *parsePciAddress("0000:00:07.0");
  }
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_EQ(guest.transferArguments.size(), 2U) << "host memory only";
  EXPECT_EQ(find(report, "gpu-path").outcome, Outcome::notObservable);
  EXPECT_THAT(find(report, "gpu-tested").seen, HasSubstr("no device at its place"));
}

TEST_F(VerifyLeasedGpusTest, GpuOfOthersIsNotTestedAndNotPassed) {
  plan.gpus.clear();
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(find(report, "gpu-path").outcome, Outcome::waived);
  EXPECT_THAT(find(report, "gpu-path").seen, HasSubstr("not tested"));
}

// `teaming`: a virtio standby, and the failover device that its driver makes.
TEST_F(VerifyTest, SelectsVfOfTeamWithOneMac) {
  replace(R"("netdevs": [)", R"("pci": [
    {"address": "0000:01:00.0", "driver": "mlx5_core",
     "path": "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0"}],
  "netdevs": [
    {"name": "eth0", "mac": "52:54:00:aa:bb:cc", "state": "down", "pci": "0000:00:05.0",
     "driver": "virtio_net", "mtu": 1500},
    {"name": "eth0nsby", "mac": "52:54:00:aa:bb:cc", "state": "down", "pci": "0000:00:05.0",
     "driver": "virtio_net", "mtu": 1500},)");
  EXPECT_EQ(verdict(verify()), Outcome::passed) << "by its driver";
  hostSide.guestPath = {*parsePciAddress("0000:00:02.0"), *parsePciAddress("0000:07:00.0")};
  guest.transfers = {transferOf(10000), transferOf(10000)};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(find(report, "mac").seen, HasSubstr("mlx5_core, 0000:01:00.0"));
  hostSide.guestPath.front() = *parsePciAddress("0000:00:09.0");
  EXPECT_EQ(find(verify(), "link").outcome, Outcome::passed) << "the tree is not as in the XML";
}

// `mac: keep`
TEST_F(VerifyTest, FindsVfWithUnknownMacByItsPlace) {
  vfOf(plan.leases[0]).settings.mac.reset();
  EXPECT_EQ(find(verify(), "mac").outcome, Outcome::failed) << "no place in the inventory";
  replace(R"("netdevs": [)", R"("pci": [
    {"address": "0000:01:00.0", "driver": "mlx5_core",
     "path": "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0"}],
  "netdevs": [)");
  hostSide.guestPath = {*parsePciAddress("0000:00:02.0"), *parsePciAddress("0000:07:00.0")};
  guest.transfers = {transferOf(10000), transferOf(10000)};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_THAT(find(report, "mac").seen, HasSubstr("MAC 52:54:00:aa:bb:cc"));
  hostSide.guestPath.front() = *parsePciAddress("0000:00:09.0");
  EXPECT_EQ(find(verify(), "mac").outcome, Outcome::failed);
}

// A VF of InfiniBand that was taken over and has no recorded GUID.
TEST_F(VerifyTest, FindsInfinibandVfWithUnknownGuidByItsPlace) {
  vfOf(plan.leases[0]).infiniband = true;
  vfOf(plan.leases[0]).settings = {};
  EXPECT_EQ(find(verify(), "rdma-device").outcome, Outcome::failed) << "no place in the inventory";
  replace(R"("netdevs": [)", R"("pci": [
    {"address": "0000:01:00.0", "driver": "mlx5_core",
     "path": "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0"}],
  "netdevs": [)");
  hostSide.guestPath = {*parsePciAddress("0000:00:02.0"), *parsePciAddress("0000:07:00.0")};
  guest.transfers = {transferOf(10000), transferOf(10000)};
  EXPECT_EQ(find(verify(), "rdma-device").outcome, Outcome::passed);
  hostSide.guestPath.front() = *parsePciAddress("0000:00:09.0");
  EXPECT_EQ(find(verify(), "rdma-device").outcome, Outcome::failed);
}

TEST_F(VerifyTest, StatesWhoObservedEachFinding) {
  const auto report = verify();
  const std::set<std::string> byHost{"device-host", "counters", "other-vfs"};
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(finding.observer, byHost.contains(finding.key) ? Observer::host : Observer::guest)
        << finding.key;
  }
  EXPECT_EQ(find(report, "counters").observer, Observer::host);
}

// Whatever the agent replies, verifyGuest() returns in time with a report that has not passed.
TEST_F(VerifyTest, LyingAgentNeverPasses) {
  const std::string deep(100000, '[');
  const std::string large = R"({"return": ")" + std::string(10U << 20U, 'x') + "\"}";
  for (const std::string& lie :
       {std::string(), std::string("garbage"), deep, large,
        std::string(R"({"return": {"pid": -1}})"),
        std::string(R"({"return": {"pid": 1}, "return": {"pid": 2, "exited": true}})"),
        std::string(R"({"return": {"exited": true, "exitcode": 0, "out-data": "%%%"}})"),
        std::string(
            "{\"return\": {\"exited\": true, \"exitcode\": 0, \"out-data\": \"\xff\xfe\"}}"),
        std::string("{\"return\": \"\\u001b[2J\"}"),
        std::string(R"({"return": {"supported_commands": [{"name": "guest-exec", "enabled": true},
                     {"name": "guest-exec-status", "enabled": true}], "pid": 5, "exited": false}})")}) {
    guest.hypervisor.agent = [&](const std::string&) { return lie; };
    const auto report = verify(1);
    EXPECT_NE(verdict(report), Outcome::passed) << lie.substr(0, 60);
    EXPECT_EQ(report.findings.size(), 1U) << lie.substr(0, 60);
  }
}

}  // namespace
}  // namespace vfpass::verify
