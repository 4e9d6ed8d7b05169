// verify-vfs ROUNDS SECONDS
//
// The time of verifyGuest() for one VF and for eight, of eight PFs and with a GPU each, at the same
// time and one after another. The guest's programs are real processes on this machine, but the
// probe only waits for SECONDS per run and returns a fixed report: what it measures is how vfpass
// arranges the runs, not a device. Prints the median of ROUNDS interleaved rounds and the ratio to
// one VF.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "fake/local_guest.hpp"
#include "rounds.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace {

using namespace vfpass;
using Json = nlohmann::json;

constexpr unsigned most = 8;

struct Arrangement {
  unsigned vfs;
  bool concurrent;
};

std::string hex(unsigned number) {
  constexpr const char* digits = "0123456789abcdef";
  return {digits[number / 16 % 16], digits[number % 16]};
}

Json inventory() {
  Json netdevs = Json::array();
  Json devices = Json::array();
  Json functions = Json::array();
  Json gpus = Json::array();
  for (unsigned i = 0; i < most; ++i) {
    const std::string nic = "0000:" + hex(i + 1) + ":00.0";
    const std::string gpu = "0000:" + hex(i + 17) + ":00.0";
    const std::string number = std::to_string(i);
    netdevs.push_back({{"name", "eth" + number},
                       {"mac", "52:54:00:aa:bb:" + hex(i)},
                       {"state", "up"},
                       {"pci", nic},
                       {"driver", "mlx5_core"},
                       {"mtu", 4200}});
    const Json gid{
        {"index", 3}, {"type", "RoCE v2"}, {"gid", "0000:0000:0000:0000:0000:ffff:0a63:0001"}};
    const Json port{{"number", 1},    {"state", "4: ACTIVE"},     {"rate", "100 Gb/sec (4X EDR)"},
                    {"gid_index", 3}, {"link_layer", "Ethernet"}, {"active_mtu", "4096"},
                    {"gids", {gid}}};
    devices.push_back({{"name", "mlx5_" + number},
                       {"pci", nic},
                       {"parent", ""},
                       {"opens", {{"done", true}, {"detail", ""}}},
                       {"ports", {port}}});
    functions.push_back(
        {{"address", gpu}, {"path", "/sys/devices/pci0000:00/0000:00:02." + number + "/" + gpu}});
    gpus.push_back({{"index", i}, {"name", "GPU"}, {"pci", gpu}, {"dma_buf_supported", 1}});
  }
  return {{"netdevs", netdevs},
          {"rdma", {{"libibverbs", {{"found", true}, {"detail", ""}}}, {"devices", devices}}},
          {"pci", functions},
          {"gpus", {{"libcuda", {{"found", true}}}, {"devices", gpus}}}};
}

std::string runOf(const std::string& initiator, const std::string& target) {
  return R"({"owners": {"target": {"bytes_checked": 999999999}}, "bandwidth": {"gigabits_per_second": 97}, "memory": {"initiator": {"kind": ")" +
         initiator + R"(", "registration": "dma-buf"}, "target": {"kind": ")" + target +
         R"(", "registration": "dma-buf"}}})";
}

std::string probeText(const std::string& seconds) {
  const auto report = [](const std::string& runs) {
    return "echo '{\"passed\": true, \"runs\": [" + runs + "]}'";
  };
  return "case $1 in hello) echo '{\"protocol\": 1}'; exit;; inventory) cat \"${0%/*}/inventory\"; "
         "exit;; esac\n"
         "sleep " +
         seconds + "\ncase \" $* \" in\n*--beside-host*) " +
         report(runOf("host", "host") + "," + runOf("gpu", "gpu")) +
         ";;\n*'--initiator-memory gpu'*) " + report(runOf("gpu", "host")) +
         ";;\n*'--target-memory gpu'*) " + report(runOf("host", "gpu")) + ";;\n*) " +
         report(runOf("host", "host")) + ";;\nesac\n";
}

verify::VerifyPlan planFor(const Arrangement& each, const std::string& folder) {
  verify::VerifyPlan plan;
  for (unsigned i = 0; i < each.vfs; ++i) {
    Lease lease;
    lease.entry = "rail" + std::to_string(i);
    lease.pf = {0, static_cast<std::uint8_t>(i + 1), 0, 0};
    vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:" + hex(i));
    plan.leases.push_back(lease);
    verify::LeasedGpu gpu{
        "gpu" + std::to_string(i),
        {*parsePciAddress("0000:00:02." + std::to_string(i)), *parsePciAddress("0000:09:00.0")},
        {}};
    gpu.paths[lease.entry].distance = "PIX";
    plan.gpus.push_back(gpu);
  }
  plan.vcpus = 2 * most;
  plan.concurrent = each.concurrent;
  plan.latency = false;
  plan.tools = false;
  plan.folder = folder;
  return plan;
}

double measure(const Arrangement& each, const std::string& seconds) {
  fake::LocalGuest guest;
  std::ofstream(guest.folder / "inventory") << inventory().dump();
  const std::string probe = "#!/bin/sh\n" + probeText(seconds);
  std::mutex mutex;  // libvirt sends one command after another to an agent
  const auto answer = guest.hypervisor.agent;
  guest.hypervisor.agent = [&](const std::string& command) {
    const std::lock_guard lock(mutex);
    return answer(command);
  };
  agent::Agent agent(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(600));
  std::uint64_t bytes = 0;
  const auto traffic = [&bytes](const Lease&) {
    bytes += 2000000000;
    return std::optional(VfTraffic{bytes, bytes, 0, 0});
  };
  const auto begin = std::chrono::steady_clock::now();
  const auto report =
      verifyGuest(agent, {probe, "vfpass-probe-1"}, planFor(each, guest.folder), {traffic, {}});
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const auto passed = std::ranges::count_if(report.findings, [](const Finding& finding) {
    return finding.key.starts_with("data-") && finding.outcome == Outcome::passed;
  });
  constexpr unsigned transfersOfVf = 12;
  if (passed != transfersOfVf * each.vfs) {
    for (const auto& finding : report.findings) {
      if (finding.outcome == Outcome::failed || finding.outcome == Outcome::notObservable) {
        std::fprintf(stderr, "%s %s: %s\n", finding.subject.c_str(), finding.key.c_str(),
                     finding.seen.c_str());
      }
    }
    std::fprintf(stderr, "verify-vfs: %td of %u transfers passed\n", passed,
                 transfersOfVf * each.vfs);
    std::exit(1);
  }
  return time.count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: verify-vfs ROUNDS SECONDS\n");
    return 2;
  }
  const auto arranged = [seconds = std::string(argv[2])](unsigned vfs, bool concurrent) {
    return [=] { return measure({vfs, concurrent}, seconds); };
  };
  std::vector<bench::Case> cases{{"1 VF                    ", arranged(1, true)},
                                 {"8 VFs at the same time  ", arranged(most, true)},
                                 {"8 VFs, --sequential     ", arranged(most, false)}};
  bench::measureInterleaved(cases, std::atoi(argv[1]));
  bench::printMedians(cases, "1 VF");
}
