#include "data_path.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace vfpass::guest {
namespace {

// Firmware counts a little late.
constexpr std::chrono::milliseconds countersSettle{3000};
constexpr std::uint64_t latencyBytes = 8;
constexpr std::uint64_t mostLatencyIterations = 1000;

}  // namespace

bool DataPath::tryMemory(const Lease& lease, const RdmaPort& port,
                         const std::optional<NearestGpu>& gpu) {
  Transfer transfer{lease.vfName,     "write", gpu ? "gpu" : "host", plan_.messageBytes,
                    plan_.iterations, false,   gpu.has_value()};
  const int index = gpu ? gpu->index : 0;
  // Write and read, because some platforms pass peer writes and fail peer reads.
  for (const bool relaxed : orderings(port)) {
    for (const char* operation : {"write", "read"}) {
      transfer.relaxedOrdering = relaxed;
      transfer.operation = operation;
      if (!tryTransfer(lease, port, transfer, index)) {
        return false;
      }
    }
  }
  transfer.relaxedOrdering = false;
  tryLatency(port, transfer, index);
  return true;
}

// To a software device the wish means nothing: nobody reorders anything there.
std::vector<bool> DataPath::orderings(const RdmaPort& port) const {
  switch (plan_.relaxedOrdering) {
    case RelaxedOrdering::off:
      return {false};
    case RelaxedOrdering::on:
      return {true};
    case RelaxedOrdering::both:
      return {false, true};
    case RelaxedOrdering::automatic:
      break;
  }
  return port.software ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

bool DataPath::tryTransfer(const Lease& lease, const RdmaPort& port, const Transfer& transfer,
                           int gpu) {
  auto arguments = commonArguments(port, transfer, gpu);
  const std::vector<std::string> own{"--operation",  transfer.operation,
                                     "--bytes",      std::to_string(transfer.messageBytes),
                                     "--iterations", std::to_string(transfer.iterations)};
  arguments.insert(arguments.end(), own.begin(), own.end());
  arguments.insert(arguments.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
  const auto before = watch_.traffic(lease);
  auto others = otherVfs(lease);
  const Finding data =
      judgeTransfer(transfer, runProbe(agent_, probe_, arguments), report_.figures);
  report_.findings.push_back(data);
  if (data.outcome != Outcome::passed) {
    return false;
  }
  judgeTrafficOf(lease, transfer.bytes() * (transfer.besideHost ? 2 : 1), before,
                 std::move(others));
  return true;
}

void DataPath::tryLatency(const RdmaPort& port, Transfer transfer, int gpu) {
  if (!plan_.latency || !plan_.probeArguments.empty()) {  // faults have been looked for above
    return;
  }
  transfer.messageBytes = latencyBytes;
  transfer.iterations = std::min(plan_.iterations, mostLatencyIterations);
  auto arguments = commonArguments(port, transfer, gpu);
  arguments.insert(arguments.end(),
                   {"--preset", "latency", "--iterations", std::to_string(transfer.iterations)});
  report_.findings.push_back(
      judgeLatency(transfer, runProbe(agent_, probe_, arguments), report_.figures));
}

std::vector<OtherVf> DataPath::otherVfs(const Lease& lease) const {
  std::vector<OtherVf> others;
  for (const auto& each : plan_.leases) {
    if (each.vfName != lease.vfName) {
      others.push_back({each.vfName, watch_.traffic(each), std::nullopt});
    }
  }
  return others;
}

void DataPath::judgeTrafficOf(const Lease& lease, std::uint64_t claimedBytes,
                              const std::optional<VfTraffic>& before, std::vector<OtherVf> others) {
  const auto end = std::chrono::steady_clock::now() + countersSettle;
  Finding found = judgeTraffic(lease.vfName, claimedBytes, before, watch_.traffic(lease));
  while (found.outcome == Outcome::failed && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    found = judgeTraffic(lease.vfName, claimedBytes, before, watch_.traffic(lease));
  }
  report_.findings.push_back(found);
  if (others.empty() || found.outcome != Outcome::passed) {
    return;
  }
  for (auto& other : others) {
    const auto of = std::ranges::find(plan_.leases, other.name, &Lease::vfName);
    other.after = watch_.traffic(*of);
  }
  report_.findings.push_back(judgeOthers(lease.vfName, claimedBytes, others));
}

std::vector<std::string> DataPath::commonArguments(const RdmaPort& port, const Transfer& transfer,
                                                   int gpu) const {
  std::vector<std::string> arguments{"loopback",
                                     "--device",
                                     port.device,
                                     "--ib-port",
                                     std::to_string(port.number),
                                     "--initiator-memory",
                                     transfer.memory,
                                     "--target-memory",
                                     transfer.memory,
                                     "--deadline",
                                     std::to_string(plan_.probePatience.count())};
  if (transfer.besideHost) {
    arguments.insert(arguments.end(), {"--beside-host", "--gpu", std::to_string(gpu)});
  }
  if (transfer.relaxedOrdering) {
    arguments.emplace_back("--relaxed-ordering");
  }
  return arguments;
}

}  // namespace vfpass::guest
