#include "data_path.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "settled_traffic.hpp"
#include "transfer_options.hpp"

namespace vfpass::verify {

bool DataPath::tryMemory(const Lease& lease, const RdmaPort& port,
                         const std::optional<TestedGpu>& gpu) {
  Transfer transfer{lease.entry,      "write", gpu ? "gpu" : "host", plan_.messageBytes,
                    plan_.iterations, false,   gpu.has_value()};
  transfer.gpu = gpu ? nameOf(*gpu) : "";
  transfer.gpuAddress = gpu ? toString(gpu->address) : "";
  transfer.software = port.software;
  // Both write and read, because peer-to-peer writes work and reads fail on some platforms.
  for (const bool relaxed : relaxedOrderings(plan_.relaxedOrdering, port.software)) {
    for (const char* operation : {"write", "read"}) {
      transfer.relaxedOrdering = relaxed;
      transfer.operation = operation;
      if (!tryTransfer(lease, port, transfer)) {
        return false;
      }
    }
  }
  if (latencyWanted(plan_)) {
    tryLatency(port, latencyOf(transfer, plan_));
  }
  return true;
}

void DataPath::tryMixedMemory(const Lease& lease, const RdmaPort& port, const TestedGpu& gpu) {
  for (Transfer each : mixedTransfers(lease.entry, plan_, port.software)) {
    each.gpu = nameOf(gpu);
    each.gpuAddress = toString(gpu.address);
    tryTransfer(lease, port, each);
  }
}

void DataPath::trySizes(const Lease& lease, const RdmaPort& port,
                        const std::optional<TestedGpu>& gpu) {
  Transfer transfer{lease.entry, "write", gpu ? "gpu" : "host"};
  transfer.gpu = gpu ? nameOf(*gpu) : "";
  transfer.gpuAddress = gpu ? toString(gpu->address) : "";
  transfer.software = port.software;
  const auto arguments = argumentsFor(port, transfer, sizesOptions(transfer, plan_));
  const auto before = watch_.traffic(lease);
  auto others = otherVfs(lease);
  const auto document = runProbe(agent_, probe_, arguments);
  const Finding sizes = judgeSizes(transfer, document, report_.figures);
  report_.findings.push_back(sizes);
  if (sizes.outcome == Outcome::passed) {
    judgeTrafficOf(lease, claimedBytes(transfer, document), before, std::move(others));
  }
}

bool DataPath::tryTransfer(const Lease& lease, const RdmaPort& port, const Transfer& transfer) {
  auto arguments = argumentsFor(port, transfer, transferOptions(transfer));
  arguments.insert(arguments.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
  const auto before = watch_.traffic(lease);
  auto others = otherVfs(lease);
  const auto document = runProbe(agent_, probe_, arguments);
  const Finding data = judgeTransfer(transfer, document, report_.figures);
  report_.findings.push_back(data);
  if (data.outcome != Outcome::passed) {
    return false;
  }
  judgeTrafficOf(lease, claimedBytes(transfer, document), before, std::move(others));
  return true;
}

void DataPath::tryLatency(const RdmaPort& port, const Transfer& latency) {
  const auto arguments = argumentsFor(port, latency, latencyOptions(latency));
  report_.findings.push_back(
      judgeLatency(latency, runProbe(agent_, probe_, arguments), report_.figures));
}

std::vector<OtherVf> DataPath::otherVfs(const Lease& lease) const {
  std::vector<OtherVf> others;
  for (const auto& each : idle_) {
    if (each.entry != lease.entry) {
      others.push_back({each.entry, watch_.traffic(each), std::nullopt});
    }
  }
  return others;
}

void DataPath::judgeTrafficOf(const Lease& lease, std::uint64_t claimedBytes,
                              const std::optional<VfTraffic>& before, std::vector<OtherVf> others) {
  const Finding found = settledTraffic(lease, claimedBytes, before, watch_.traffic);
  report_.findings.push_back(found);
  if (others.empty() || found.outcome != Outcome::passed) {
    return;
  }
  for (auto& other : others) {
    const auto of = std::ranges::find(idle_, other.name, &Lease::entry);
    other.after = watch_.traffic(*of);
  }
  report_.findings.push_back(judgeOthers(lease.entry, claimedBytes, others));
}

std::vector<std::string> DataPath::argumentsFor(const RdmaPort& port, const Transfer& transfer,
                                                const std::vector<std::string>& options) const {
  std::vector<std::string> arguments{"loopback",
                                     "--device",
                                     port.device,
                                     "--ib-port",
                                     std::to_string(port.number),
                                     "--deadline",
                                     std::to_string(plan_.probeTimeout.count())};
  if (!transfer.gpuAddress.empty()) {
    arguments.insert(arguments.end(), {"--gpu", transfer.gpuAddress});
  }
  arguments.insert(arguments.end(), options.begin(), options.end());
  return arguments;
}

}  // namespace vfpass::verify
