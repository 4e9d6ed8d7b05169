#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "scripted_guest.hpp"
#include "sound_inventory.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

constexpr int vfs = 8;

std::string transferAt(double gigabits) {
  return R"({"passed": true, "runs": [{"owners": {"target": {"bytes_checked": 10000}},
    "bandwidth": {"gigabits_per_second": )" +
         std::to_string(gigabits) + "}}]}";
}

// A guest with VFs of several PFs, and a transfer that ends only when as many as `together` have
// been started. libvirt sends one command after another to an agent, hence the lock.
class ConcurrentVfsTest : public testing::Test {
 protected:
  ConcurrentVfsTest() {
    for (int i = 0; i < vfs; ++i) {
      Lease lease;
      lease.entry = "rail" + std::to_string(i);
      lease.pf = {0, static_cast<std::uint8_t>(i + 1), 0, 0};
      vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
      plan.leases.push_back(lease);
    }
    plan.vcpus = 2 * vfs;
    plan.messageBytes = 1000;
    plan.iterations = 10;
    plan.relaxedOrdering = RelaxedOrdering::off;
    plan.latency = false;
    plan.tools = false;
    guest.inventory = soundInventory;
    answer_ = guest.hypervisor.agent;
    guest.hypervisor.agent = [this](const std::string& command) { return answer(command); };
  }

  std::string answer(const std::string& command) {
    const std::lock_guard lock(mutex_);
    const Json request = Json::parse(command);
    if (request["execute"] == "guest-exec-status" && transfers() != 0 && transfers() < together) {
      return R"({"return": {"exited": false}})";
    }
    return answer_(command);
  }

  [[nodiscard]] long transfers() const {
    return std::ranges::count(guest.commands, std::string("loopback"));
  }

  VerifyReport verify() {
    guest.commands.clear();
    agent::Agent agent(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(20));
    const auto traffic = [this](const Lease&) {
      const std::lock_guard lock(mutex_);
      return std::optional(VfTraffic{0, static_cast<std::uint64_t>(transfers()) * 11000, 0, 0});
    };
    const auto host = [](const Lease&) {
      HostSide side;
      side.link = {8000, 16};
      side.hold = {true, "vfio-pci", true, "process 7 (qemu)"};
      return side;
    };
    return verifyGuest(agent, {"the probe", "vfpass-probe-1"}, plan, {traffic, {}, host});
  }

  static long count(const VerifyReport& report, std::string_view key, Outcome outcome) {
    return std::ranges::count_if(report.findings, [&](const Finding& each) {
      return each.key == key && each.outcome == outcome;
    });
  }

  ScriptedGuest guest;
  VerifyPlan plan;
  long together = 0;

 private:
  std::mutex mutex_;
  std::function<std::string(const std::string&)> answer_;
};

TEST_F(ConcurrentVfsTest, VerifiesVfsOfDifferentPfsAtTheSameTime) {
  together = vfs;
  guest.transfers.assign(std::size_t{2} * vfs, transferAt(97));
  const auto report = verify();
  EXPECT_EQ(count(report, "data-host", Outcome::passed), 2 * vfs);
  EXPECT_EQ(report.concurrentVfs, std::size_t{vfs});
  EXPECT_EQ(count(report, "other-vfs", Outcome::passed), 0) << "they move data, too";
  std::vector<std::string> order;
  for (const auto& each : report.findings) {
    if (!each.subject.empty() && (order.empty() || order.back() != each.subject)) {
      order.push_back(each.subject);
    }
  }
  EXPECT_THAT(order, testing::ElementsAre("rail0", "rail1", "rail2", "rail3", "rail4", "rail5",
                                          "rail6", "rail7"))
      << "in the mapping's order, whichever ended first";
}

TEST_F(ConcurrentVfsTest, VerifiesOneAfterAnotherIfSequentialOrWithoutProcessors) {
  for (const auto& [concurrent, vcpus] : {std::pair(false, 64U), std::pair(true, 0U)}) {
    plan.concurrent = concurrent;
    plan.vcpus = vcpus;
    guest.transfers.assign(std::size_t{2} * vfs, transferAt(97));
    const auto report = verify();
    EXPECT_EQ(report.concurrentVfs, 1U);
    EXPECT_EQ(count(report, "data-host", Outcome::passed), 2 * vfs);
    EXPECT_NE(count(report, "other-vfs", Outcome::passed) +
                  count(report, "other-vfs", Outcome::notObservable),
              0)
        << "compared with all other VFs";
  }
}

TEST_F(ConcurrentVfsTest, VerifiesSlowVfAgainAlone) {
  plan.leases.resize(2);
  plan.minimumShare = 0.9;  // of 72.5 Gb/s: PCI Express 3.0 x16 in loopback
  together = 2;
  // Both are slow at first; then one is fast alone, and the other stays slow.
  guest.transfers = {transferAt(40), transferAt(40), transferAt(40), transferAt(40),
                     transferAt(70), transferAt(70), transferAt(41), transferAt(41)};
  const auto report = verify();
  EXPECT_EQ(transfers(), 8);
  EXPECT_EQ(count(report, "bandwidth", Outcome::passed), 1);
  EXPECT_EQ(count(report, "bandwidth", Outcome::failed), 1);
  EXPECT_EQ(report.figures.size(), 4U) << "those of the last measurement";
  EXPECT_EQ(report.figures.front().gigabitsPerSecond, 70);
}

TEST_F(ConcurrentVfsTest, ErrorOfOneVfDoesNotHideTheOthers) {
  plan.leases.resize(2);
  guest.transfers = {transferAt(97), "no JSON", transferAt(97), transferAt(97)};
  const auto report = verify();
  EXPECT_EQ(count(report, "data-host", Outcome::notObservable), 1);
  EXPECT_GE(count(report, "data-host", Outcome::passed), 1);
  EXPECT_EQ(verdict(report), Outcome::notObservable);
}

}  // namespace
}  // namespace vfpass::verify
