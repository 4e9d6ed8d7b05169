#include "vfpass/guest/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scripted_guest.hpp"

namespace vfpass::guest {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* soundInventory = R"text({
  "netdevs": [{"name": "eth1", "mac": "52:54:00:aa:bb:cc", "state": "up", "pci": "0000:01:00.0",
               "driver": "mlx5_core", "mtu": 1500}],
  "rdma": {"libibverbs": {"found": true, "detail": ""}, "devices": [
    {"name": "mlx5_0", "node_guid": "5254:0003:00aa:bbcc", "pci": "0000:01:00.0", "parent": "",
     "opens": {"done": true, "detail": ""}, "ports": [
      {"number": 1, "state": "4: ACTIVE", "rate": "100 Gb/sec (4X EDR)", "gid_index": 3,
       "gids": [{"gid": "fe80:0000:0000:0000:5054:00ff:feaa:bbcc"}]}]}]},
  "gpus": {"libcuda": {"found": false, "detail": "libcuda.so.1 is missing"}, "devices": []}
})text";

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
    lease.vfName = "rail0";
    lease.settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
    plan.leases = {lease};
    plan.messageBytes = 1000;
    plan.iterations = 10;
    guest.inventory = soundInventory;
    guest.transfers = {transferOf(10000), transferOf(10000)};
    // The host sees what the guest sends.
    traffic = [this](const Lease&) {
      const auto sent = std::ranges::count(guest.commands, "loopback") * 11000;
      return VfTraffic{0, static_cast<std::uint64_t>(sent), 0, 0};
    };
  }

  VerifyReport verify(int patience = 20) {
    Agent agent(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(patience));
    return verifyGuest(agent, {"the probe", "vfpass-probe-1"}, plan, {traffic, {}});
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
};

TEST_F(VerifyTest, ASoundGuestPasses) {
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::passed);
  EXPECT_EQ(report.figures.size(), 2U);
  EXPECT_EQ(guest.written["/var/lib/vfpass-probe/vfpass-probe-1.new"], "the probe");
}

TEST_F(VerifyTest, TheSameBuildIsNotCopiedAgain) {
  guest.files.insert("/var/lib/vfpass-probe/vfpass-probe-1");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  EXPECT_TRUE(guest.written.empty());
}

TEST_F(VerifyTest, AnInstalledProbeIsTheWayAroundARefusedCopy) {
  guest.forbidden = {"guest-file-open"};
  guest.files.insert("/usr/libexec/vfpass/vfpass-probe");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  guest.files.clear();
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "probe").seen, HasSubstr("does not allow guest-file-open"));
}

TEST_F(VerifyTest, AnAgentThatGoesWhileTheProbeIsCopiedIsToldByWhatWentWrongFirst) {
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

TEST_F(VerifyTest, ARefusedAgentIsNotObservableWithARemedy) {
  guest.forbidden = {"guest-exec"};
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  EXPECT_THAT(find(report, "agent").remedy, HasSubstr("/etc/sysconfig/qemu-ga"));
}

TEST_F(VerifyTest, EachBrokenLinkIsItsOwnFinding) {
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
    EXPECT_EQ(find(report, "data-host").key, "") << "what lies behind is not tried: " << each.key;
  }
}

TEST_F(VerifyTest, AFunctionWithoutADriverIsNamed) {
  guest.inventory = R"({"pci": [{"address": "0000:01:00.0", "class": 131072, "driver": ""}]})";
  const auto report = verify();
  EXPECT_EQ(find(report, "driver").outcome, Outcome::failed);
  EXPECT_THAT(find(report, "driver").seen, HasSubstr("0000:01:00.0"));
}

TEST_F(VerifyTest, AnInfinibandPortIsFoundByItsGuid) {
  plan.leases.front().infiniband = true;
  plan.leases.front().settings = {};
  plan.leases.front().settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cc");
  EXPECT_EQ(verdict(verify()), Outcome::passed);
  plan.leases.front().settings.portGuid = parseGuid("50:54:00:ff:fe:aa:bb:cd");
  EXPECT_EQ(find(verify(), "rdma-device").outcome, Outcome::failed);
}

TEST_F(VerifyTest, AFalsePassWhoseCountersDoNotMoveFails) {
  traffic = [](const Lease&) { return VfTraffic{5, 5, 5, 5}; };
  const auto report = verify();
  EXPECT_EQ(verdict(report), Outcome::failed);
  EXPECT_EQ(find(report, "counters").outcome, Outcome::failed);
}

TEST_F(VerifyTest, WithoutCountersItIsNotObservableAndNeverAPass) {
  traffic = [](const Lease&) { return std::nullopt; };
  EXPECT_EQ(verdict(verify()), Outcome::notObservable);
}

TEST_F(VerifyTest, WrongBytesAreNamedAndLessThanAskedForIsNoPass) {
  guest.transfers = {R"({"passed": false, "runs": [{"owners": {"target": {"corruptions": [
    {"damage": "flipped", "message": 7, "offset": 99}]}}}]})"};
  const auto corrupted = verify();
  EXPECT_EQ(verdict(corrupted), Outcome::failed);
  EXPECT_EQ(find(corrupted, "data-host").seen, "flipped in message 7 at offset 99");
  guest.transfers = {transferOf(9999)};
  EXPECT_EQ(verdict(verify()), Outcome::failed) << "one byte was not checked";
}

TEST_F(VerifyTest, TheMinimumIsAShareOfThePortsRate) {
  plan.minimumShare = 0.9;
  EXPECT_EQ(find(verify(), "bandwidth").outcome, Outcome::passed);
  guest.transfers = {transferOf(10000, 50), transferOf(10000, 60)};
  EXPECT_EQ(find(verify(), "bandwidth").outcome, Outcome::failed);
  replace(R"("parent": "")", R"("parent": "eth1")");
  guest.transfers = {transferOf(10000, 1), transferOf(10000, 1)};
  EXPECT_EQ(find(verify(), "bandwidth").outcome, Outcome::waived)
      << "SoftRoCE's rate means nothing";
}

TEST_F(VerifyTest, AWantedGpuThatIsNotThereFails) {
  EXPECT_EQ(find(verify(), "gpu").outcome, Outcome::waived);
  plan.gpuWanted = true;
  guest.transfers = {transferOf(10000), transferOf(10000)};
  EXPECT_EQ(find(verify(), "gpu").outcome, Outcome::failed);
}

// Whatever the guest's agent says, there is a report that is no pass, and it comes in time.
TEST_F(VerifyTest, ALyingAgentIsNeverAPass) {
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
}  // namespace vfpass::guest
