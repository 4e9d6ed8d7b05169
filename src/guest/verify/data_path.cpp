#include "data_path.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "transfer_options.hpp"

namespace vfpass::verify {
namespace {

// Enough to show that replies arrive; latency has its own run.
constexpr const char* reachIterations = "20";
constexpr const char* reachBytes = "8";
// As many messages of a page: rdma_cm only connects, and other checks cover what follows.
constexpr std::uint64_t rdmaCmBytes = 4096;

std::vector<std::string> argumentsFor(const char* command, const PathEnd& end,
                                      std::chrono::seconds deadline,
                                      const std::vector<std::string>& others) {
  auto arguments =
      portArguments(command, end.port, end.gpu ? toString(end.gpu->address) : "", deadline);
  arguments.insert(arguments.end(), others.begin(), others.end());
  return arguments;
}

// What a finding of the counters belongs to: `write`, `read`, or all sizes of both.
std::string labelOf(const Transfer& transfer, const Finding& data) {
  return data.key.find("sizes-") == std::string::npos ? transfer.operation : "sizes";
}

}  // namespace

PairReports runSession(const SessionEnd& initiator, const SessionEnd& target,
                       const VerifyPlan& plan, const std::vector<std::string>& operation) {
  const std::string token = agent::randomName();
  const std::string folder = plan.folder + "/exchange-" + token;
  const auto deadline =
      std::min(probeDeadline(plan, initiator.agent), probeDeadline(plan, target.agent));
  auto connect = argumentsFor("connect", initiator.end, deadline, {"--token", token});
  connect.insert(connect.end(), operation.begin(), operation.end());
  agent::ExchangeEnd far(target.agent, target.end.probe, folder + "-listen",
                         argumentsFor("listen", target.end, deadline, {"--token", token}));
  agent::ExchangeEnd near(initiator.agent, initiator.end.probe, folder + "-connect", connect);
  relayLines(near, far);
  return {probeDocument(initiator.end.probe, near.result()),
          probeDocument(target.end.probe, far.result())};
}

std::vector<Counted> countedAt(const PathEnd& initiator, const PathEnd& target) {
  std::vector<Counted> all{{&initiator, {}, {}}};
  if (&initiator != &target) {
    all.push_back({&target, {}, {}});
  }
  for (Counted& each : all) {
    const PathEnd& end = *each.end;
    each.own = end.traffic(end.lease);
    for (const Lease& idle : end.idle) {
      if (idle.entry != end.lease.entry) {
        each.others.push_back({idle.entry, end.traffic(idle), std::nullopt});
      }
    }
  }
  return all;
}

void judgeCounters(std::vector<Counted> before, const std::string& label,
                   const ClaimedBytes& ofInitiator, std::vector<Finding>& findings) {
  for (Counted& each : before) {
    const PathEnd& end = *each.end;
    const bool initiates = &each == &before.front();
    const ClaimedBytes claimed = initiates ? ofInitiator : atOtherEnd(ofInitiator);
    Finding own = settledTraffic(end.lease, claimed, each.own, end.traffic);
    own.subject = end.subject;
    own.seen = label + ": " + own.seen;
    findings.push_back(own);
    if (each.others.empty() || own.outcome != Outcome::passed) {
      continue;
    }
    for (OtherVf& other : each.others) {
      other.after = end.traffic(*std::ranges::find(end.idle, other.name, &Lease::entry));
    }
    findings.push_back(judgeOthers(end.subject, claimed, each.others));
  }
}

std::string DataPath::guestSetups() const {
  return guestSetupOf(initiator_.lease.domainName) + " and " +
         guestSetupOf(target_.lease.domainName);
}

void DataPath::ping() {
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

bool DataPath::reach() {
  return conclude(
      "reach", {"--operation", "send", "--bytes", reachBytes, "--iterations", reachIterations},
      [&](const PairReports& reports) { return judgeReach(subject_, reports, guestSetups()); });
}

void DataPath::connectByRdmaCm() {
  for (const PathEnd* end : {&initiator_, &target_}) {
    if (!end->noRdmaCm.empty()) {
      report_.findings.push_back(rdmaCmNotTried(subject_, end->subject + ": " + end->noRdmaCm));
      return;
    }
  }
  conclude("rdma-cm",
           {"--rdma-cm", "--bytes", std::to_string(rdmaCmBytes), "--iterations", reachIterations,
            "--minimum-time", "0"},
           [&](const PairReports& reports) {
             return judgeRdmaCm(subject_, rdmaCmBytes * std::stoul(reachIterations), reports);
           });
}

bool DataPath::tryMemory(const std::string& memory) {
  Transfer transfer = transferIn(memory);
  transfer.messageBytes = plan_.messageBytes;
  transfer.iterations = plan_.iterations;
  transfer.besideHost = memory == "gpu";
  for (const Transfer& each : variantsOf(transfer, plan_.relaxedOrdering)) {
    if (!tryTransfer(each)) {
      return false;
    }
  }
  return !latencyWanted(plan_) || tryLatency(latencyOf(transfer, plan_));
}

void DataPath::tryMixedMemory(const std::string& initiatorMemory) {
  const PathEnd& end = initiatorMemory == "gpu" ? initiator_ : target_;
  for (Transfer each : mixedTransfers(subject_, plan_, software_, initiatorMemory)) {
    each.gpu = end.gpu ? nameOf(*end.gpu) : "";
    tryTransfer(each);
  }
}

void DataPath::trySizes(const std::string& memory) {
  const Transfer transfer = transferIn(memory);
  concludeWithCounters("sizes-" + memory, sizesOptions(transfer, plan_), transfer, judgePairSizes);
}

Transfer DataPath::transferIn(const std::string& memory) const {
  Transfer transfer{subject_, "write", memory};
  if (memory == "gpu") {
    transfer.gpu = nameOf(*initiator_.gpu) + (isLoopback() ? "" : " and " + nameOf(*target_.gpu));
  }
  transfer.software = software_;
  return transfer;
}

bool DataPath::tryTransfer(const Transfer& transfer) {
  auto options = transferOptions(transfer);
  options.insert(options.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
  return concludeWithCounters("data-" + transfer.path(), options, transfer, judgePairTransfer);
}

// In a loopback a problem with it does not stop the other checks.
bool DataPath::tryLatency(const Transfer& latency) {
  const bool passed = conclude("latency-" + latency.memory, latencyOptions(latency),
                               [&](const PairReports& reports) {
                                 return judgePairLatency(latency, reports, report_.figures);
                               });
  return passed || isLoopback();
}

PairReports DataPath::exchange(const std::vector<std::string>& operation) const {
  if (!isLoopback()) {
    return runSession({initiator_.agent, initiator_}, {target_.agent, target_}, plan_, operation);
  }
  return {runProbe(initiator_.agent, initiator_.probe,
                   argumentsFor("loopback", initiator_, probeDeadline(plan_, initiator_.agent),
                                operation)),
          nullptr, true};
}

bool DataPath::conclude(const std::string& name, const std::vector<std::string>& operation,
                        const std::function<Finding(const PairReports&)>& judge) {
  Finding finding{
      "peer-" + name, subject_, Outcome::notObservable, "the probes exchange data", {}, {}};
  try {
    finding = judge(exchange(operation));
  } catch (const Error& error) {
    if (isLoopback()) {
      throw;  // the only guest does not answer
    }
    finding.seen = error.what();
    finding.remedy = error.remedy();
  }
  report_.findings.push_back(finding);
  return finding.outcome == Outcome::passed;
}

bool DataPath::concludeWithCounters(const std::string& name,
                                    const std::vector<std::string>& options,
                                    const Transfer& transfer, JudgeTransfer* judge) {
  auto before = countedAt(initiator_, target_);
  ClaimedBytes claimed;
  const bool passed = conclude(name, options, [&](const PairReports& reports) {
    claimed = claimedBytes(transfer, reports.initiator, isLoopback());
    return judge(transfer, reports, report_.figures);
  });
  if (passed) {
    const std::string label = labelOf(transfer, report_.findings.back());
    judgeCounters(std::move(before), label, claimed, report_.findings);
  }
  return passed;
}

}  // namespace vfpass::verify
