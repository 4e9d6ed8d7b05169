#include "data_path.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "judge_pair.hpp"
#include "judge_transfer.hpp"
#include "transfer_options.hpp"
#include "vfpass/agent/probe_program.hpp"

namespace vfpass::verify {
namespace {

// Enough to show that replies arrive; latency has its own run.
constexpr const char* reachIterations = "20";
constexpr const char* reachBytes = "8";
// As many messages of a page: rdma_cm only connects, and other checks cover what follows.
constexpr std::uint64_t rdmaCmBytes = 4096;

std::string newToken() {
  std::random_device random;
  std::ostringstream text;
  for (int word = 0; word < 4; ++word) {
    text << std::hex << random();
  }
  return text.str();
}

std::vector<std::string> argumentsFor(const char* command, const PairEnd& end,
                                      const VerifyPlan& plan, const std::string& token) {
  auto arguments = portArguments(command, end.port, end.gpu ? toString(end.gpu->address) : "",
                                 plan.probeTimeout);
  arguments.insert(arguments.end(), {"--token", token});
  return arguments;
}

// What a finding of the counters belongs to: `write`, `read`, or all sizes of both.
std::string labelOf(const Transfer& transfer, const Finding& data) {
  return data.key.find("sizes-") == std::string::npos ? transfer.operation : "sizes";
}

}  // namespace

bool DataPath::tryTransfers(Transfer transfer) {
  for (const bool relaxed : relaxedOrderings(plan_.relaxedOrdering, software_)) {
    // Both write and read, because peer-to-peer writes work and reads fail on some platforms.
    // Between two guests, together they also cover both directions.
    for (const char* operation : {"write", "read"}) {
      transfer.relaxedOrdering = relaxed;
      transfer.operation = operation;
      if (!tryTransfer(transfer)) {
        return false;
      }
    }
  }
  return !latencyWanted(plan_) || tryLatency(latencyOf(transfer, plan_));
}

std::vector<std::string> DataPath::optionsOf(const Transfer& transfer) const {
  auto options = transferOptions(transfer);
  options.insert(options.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
  return options;
}

bool LoopbackDataPath::tryMemory(const std::optional<TestedGpu>& gpu) {
  Transfer transfer = transferIn(gpu);
  transfer.messageBytes = plan_.messageBytes;
  transfer.iterations = plan_.iterations;
  transfer.besideHost = gpu.has_value();
  return tryTransfers(transfer);
}

void LoopbackDataPath::tryMixedMemory(const TestedGpu& gpu) {
  for (Transfer each : mixedTransfers(subject_, plan_, software_)) {
    each.gpu = nameOf(gpu);
    each.gpuAddress = toString(gpu.address);
    tryTransfer(each);
  }
}

void LoopbackDataPath::trySizes(const std::optional<TestedGpu>& gpu) {
  const Transfer transfer = transferIn(gpu);
  conclude(transfer, sizesOptions(transfer, plan_), judgeSizes);
}

Transfer LoopbackDataPath::transferIn(const std::optional<TestedGpu>& gpu) const {
  Transfer transfer{subject_, "write", gpu ? "gpu" : "host"};
  transfer.gpu = gpu ? nameOf(*gpu) : "";
  transfer.gpuAddress = gpu ? toString(gpu->address) : "";
  transfer.software = software_;
  return transfer;
}

bool LoopbackDataPath::tryTransfer(const Transfer& transfer) {
  return conclude(transfer, optionsOf(transfer), judgeTransfer);
}

// A problem with it does not stop the other checks.
bool LoopbackDataPath::tryLatency(const Transfer& latency) {
  report_.findings.push_back(
      judgeLatency(latency, runLoopback(latency, latencyOptions(latency)), report_.figures));
  return true;
}

template <typename Judge>
bool LoopbackDataPath::conclude(const Transfer& transfer, const std::vector<std::string>& options,
                                const Judge& judge) {
  const auto before = guest_.watch.traffic(lease_);
  auto others = otherVfs();
  const auto document = runLoopback(transfer, options);
  const Finding data = judge(transfer, document, report_.figures);
  report_.findings.push_back(data);
  if (data.outcome == Outcome::passed) {
    judgeCounters(labelOf(transfer, data), claimedBytes(transfer, document), before,
                  std::move(others));
  }
  return data.outcome == Outcome::passed;
}

std::vector<OtherVf> LoopbackDataPath::otherVfs() const {
  std::vector<OtherVf> others;
  for (const auto& each : guest_.idle) {
    if (each.entry != lease_.entry) {
      others.push_back({each.entry, guest_.watch.traffic(each), std::nullopt});
    }
  }
  return others;
}

void LoopbackDataPath::judgeCounters(const std::string& label, std::uint64_t claimedBytes,
                                     const std::optional<VfTraffic>& before,
                                     std::vector<OtherVf> others) {
  Finding found = settledTraffic(lease_, claimedBytes, before, guest_.watch.traffic);
  found.seen = label + ": " + found.seen;
  report_.findings.push_back(found);
  if (others.empty() || found.outcome != Outcome::passed) {
    return;
  }
  for (auto& other : others) {
    const auto of = std::ranges::find(guest_.idle, other.name, &Lease::entry);
    other.after = guest_.watch.traffic(*of);
  }
  report_.findings.push_back(judgeOthers(lease_.entry, claimedBytes, others));
}

nlohmann::json LoopbackDataPath::runLoopback(const Transfer& transfer,
                                             const std::vector<std::string>& options) const {
  auto arguments = portArguments("loopback", port_, transfer.gpuAddress, plan_.probeTimeout);
  arguments.insert(arguments.end(), options.begin(), options.end());
  return runProbe(guest_.agent, guest_.probe, arguments);
}

PairReports runSession(const SessionEnd& initiator, const SessionEnd& target,
                       const VerifyPlan& plan, const std::vector<std::string>& operation) {
  const std::string token = newToken();
  const std::string folder = plan.folder + "/exchange-" + token;
  auto connect = argumentsFor("connect", initiator.end, plan, token);
  connect.insert(connect.end(), operation.begin(), operation.end());
  agent::ExchangeEnd far(target.agent, target.end.probe, folder + "-listen",
                         argumentsFor("listen", target.end, plan, token));
  agent::ExchangeEnd near(initiator.agent, initiator.end.probe, folder + "-connect", connect);
  relayLines(near, far);
  return {probeDocument(initiator.end.probe, near.result()),
          probeDocument(target.end.probe, far.result())};
}

Finding judgeCounters(const PairEnd& end, const std::string& label, std::uint64_t claimedBytes,
                      const std::optional<VfTraffic>& before) {
  Finding finding = settledTraffic(end.lease, claimedBytes, before, end.traffic);
  finding.subject = end.subject;
  finding.seen = label + ": " + finding.seen;
  return finding;
}

std::string PairDataPath::guestSetups() const {
  return guestSetupOf(initiator_.lease.domainName) + " and " +
         guestSetupOf(target_.lease.domainName);
}

void PairDataPath::ping() {
  const std::string& interface = initiator_.port.netdev;
  const auto address = addressOfGid(target_.port.gid);
  if (interface.empty() || !address) {
    report_.findings.push_back(noAddressToPing(subject_, interface.empty()
                                                             ? "IP over InfiniBand is not tested"
                                                             : "the GID is not an address"));
    return;
  }
  nlohmann::json document;
  try {
    document = runProbe(initiator_.agent, initiator_.probe,
                        {"ping", "--interface", interface, "--address", *address});
  } catch (const agent::AgentUnavailable& error) {
    document = {{"error", error.what()}};  // an installed probe without this command, for example
  }
  report_.findings.push_back(judgePing(subject_, interface, *address, document, guestSetups()));
}

bool PairDataPath::reach() {
  return conclude(
      "peer-reach", {"--operation", "send", "--bytes", reachBytes, "--iterations", reachIterations},
      [&](const PairReports& reports) { return judgeReach(subject_, reports, guestSetups()); });
}

void PairDataPath::connectByRdmaCm() {
  for (const PairEnd* end : {&initiator_, &target_}) {
    if (!end->noRdmaCm.empty()) {
      report_.findings.push_back(rdmaCmNotTried(subject_, end->subject + ": " + end->noRdmaCm));
      return;
    }
  }
  conclude("peer-rdma-cm",
           {"--rdma-cm", "--bytes", std::to_string(rdmaCmBytes), "--iterations", reachIterations,
            "--minimum-time", "0"},
           [&](const PairReports& reports) {
             return judgeRdmaCm(subject_, rdmaCmBytes * std::stoul(reachIterations), reports);
           });
}

bool PairDataPath::tryMemory(const std::string& memory) {
  Transfer transfer{subject_, "", memory, plan_.messageBytes, plan_.iterations};
  transfer.besideHost = memory == "gpu";
  if (transfer.besideHost) {
    transfer.gpu = nameOf(*initiator_.gpu) + " and " + nameOf(*target_.gpu);
  }
  transfer.software = software_;
  return tryTransfers(transfer);
}

bool PairDataPath::tryLatency(const Transfer& latency) {
  return conclude("peer-latency-" + latency.memory, latencyOptions(latency),
                  [&](const PairReports& reports) {
                    return judgePairLatency(latency, reports, report_.figures);
                  });
}

void PairDataPath::tryMixedMemory(const std::string& initiatorMemory) {
  const PairEnd& end = initiatorMemory == "gpu" ? initiator_ : target_;
  for (Transfer each : mixedTransfers(subject_, plan_, software_, {initiatorMemory})) {
    each.gpu = end.gpu ? nameOf(*end.gpu) : "";
    tryTransfer(each);
  }
}

void PairDataPath::trySizes(const std::string& memory) {
  Transfer transfer{subject_, "write", memory};
  transfer.software = software_;
  concludeWithCounters("peer-sizes-" + memory, sizesOptions(transfer, plan_), transfer,
                       judgePairSizes);
}

bool PairDataPath::tryTransfer(const Transfer& transfer) {
  return concludeWithCounters("peer-data-" + transfer.path(), optionsOf(transfer), transfer,
                              judgePairTransfer);
}

template <typename Judge>
bool PairDataPath::concludeWithCounters(const std::string& key,
                                        const std::vector<std::string>& options,
                                        const Transfer& transfer, const Judge& judge) {
  const auto sent = initiator_.traffic(initiator_.lease);
  const auto received = target_.traffic(target_.lease);
  std::uint64_t claimed = 0;
  const bool passed = conclude(key, options, [&](const PairReports& reports) {
    claimed = claimedBytes(transfer, reports.initiator);
    return judge(transfer, reports, report_.figures);
  });
  if (passed) {
    const std::string label = labelOf(transfer, report_.findings.back());
    report_.findings.push_back(judgeCounters(initiator_, label, claimed, sent));
    report_.findings.push_back(judgeCounters(target_, label, claimed, received));
  }
  return passed;
}

template <typename Judge>
bool PairDataPath::conclude(const std::string& key, const std::vector<std::string>& operation,
                            const Judge& judge) {
  Finding finding{key, subject_, Outcome::notObservable, "the probes exchange data", {}, {}};
  try {
    finding = judge(
        runSession({initiator_.agent, initiator_}, {target_.agent, target_}, plan_, operation));
  } catch (const Error& error) {
    finding.seen = error.what();
    finding.remedy = error.remedy();
  }
  report_.findings.push_back(finding);
  return finding.outcome == Outcome::passed;
}

}  // namespace vfpass::verify
