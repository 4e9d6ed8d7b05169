#include "vfpass/verify/verify_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scripted_guest.hpp"
#include "sound_inventory.hpp"
#include "vfpass/cancelled.hpp"

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
    lease.settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
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

  static const Finding& find(const VerifyReport& report, const std::string& key) {
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
  plan.leases.front().infiniband = true;
  plan.leases.front().settings = {};
  plan.leases.front().settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cc");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  plan.leases.front().settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cd");
  EXPECT_EQ(find(verify(), "rdma-device").outcome, Outcome::failed);
}

TEST_F(VerifyTest, FailsWhenCountersDoNotMove) {
  traffic = [](const Lease&) { return VfTraffic{5, 5, 5, 5}; };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_EQ(find(report, "counters").outcome, Outcome::failed);
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

TEST_F(VerifyTest, IsNotObservableWhenAnotherVfMovesAsMuch) {
  Lease other = plan.leases.front();
  other.entry = "rail1";
  other.settings.mac = parseMacAddress("52:54:00:aa:bb:dd");
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

TEST_F(VerifyTest, FailsForMissingOrUncheckedLatency) {
  for (const std::string from :
       {"\"median\": 2.5", "\"bytes_checked\": 80", "\"operation\": \"read\""}) {
    const std::string sound = guest.latency;
    guest.latency.replace(guest.latency.find(from), from.size(), "\"x\": 1");
    guest.transfers = {transferOf(10000), transferOf(10000)};
    EXPECT_EQ(find(verify(), "latency-host").outcome, Outcome::failed) << from;
    guest.latency = sound;
  }
}

TEST_F(VerifyTest, FailsWithoutWantedGpu) {
  EXPECT_EQ(find(verify(), "gpu").outcome, Outcome::waived);
  plan.gpuWanted = true;
  guest.transfers = {transferOf(10000), transferOf(10000)};
  EXPECT_EQ(find(verify(), "gpu").outcome, Outcome::failed);
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
