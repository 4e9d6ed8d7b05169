#include "pair_data_path.hpp"

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "judge_ping.hpp"
#include "judge_rdma_cm.hpp"
#include "settled_traffic.hpp"
#include "transfer_options.hpp"
#include "vfpass/agent/exchange.hpp"

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
  std::vector<std::string> arguments{command,
                                     "--device",
                                     end.port.device,
                                     "--ib-port",
                                     std::to_string(end.port.number),
                                     "--token",
                                     token,
                                     "--deadline",
                                     std::to_string(plan.probeTimeout.count())};
  if (end.gpu) {
    arguments.insert(arguments.end(), {"--gpu", toString(end.gpu->address)});
  }
  return arguments;
}

}  // namespace

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

void PairDataPath::ping() {
  const std::string& interface = initiator_.port.netdev;
  const auto address = addressOfGid(target_.port.gid);
  if (interface.empty() || !address) {
    report_.findings.push_back(noAddressToPing(subject_, interface.empty()
                                                             ? "IP over InfiniBand is not tested"
                                                             : "the GID is no address"));
    return;
  }
  nlohmann::json document;
  try {
    document = runProbe(initiator_.agent, initiator_.probe,
                        {"ping", "--interface", interface, "--address", *address});
  } catch (const agent::AgentUnavailable& error) {
    document = {{"error", error.what()}};  // an installed probe without this command, for example
  }
  report_.findings.push_back(judgePing(subject_, interface, *address, document));
}

bool PairDataPath::reach() {
  return conclude("peer-reach",
                  {"--operation", "send", "--bytes", reachBytes, "--iterations", reachIterations},
                  [&](const PairReports& reports) { return judgeReach(subject_, reports); });
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

// Both write and read, because peer-to-peer writes work and reads fail on some platforms. Together
// they also cover both directions.
bool PairDataPath::tryMemory(const std::string& memory) {
  Transfer transfer{subject_, "", memory, plan_.messageBytes, plan_.iterations};
  transfer.besideHost = memory == "gpu";
  if (transfer.besideHost) {
    transfer.gpu = nameOf(*initiator_.gpu) + " and " + nameOf(*target_.gpu);
  }
  const bool software = initiator_.port.software || target_.port.software;
  transfer.software = software;
  for (const bool relaxed : relaxedOrderings(plan_.relaxedOrdering, software)) {
    for (const char* operation : {"write", "read"}) {
      transfer.relaxedOrdering = relaxed;
      transfer.operation = operation;
      if (!tryTransfer(transfer)) {
        return false;
      }
    }
  }
  if (!latencyWanted(plan_)) {
    return true;
  }
  const Transfer latency = latencyOf(transfer, plan_);
  return conclude("peer-latency-" + memory, latencyOptions(latency),
                  [&](const PairReports& reports) {
                    return judgePairLatency(latency, reports, report_.figures);
                  });
}

void PairDataPath::tryMixedMemory(const std::string& initiatorMemory) {
  const bool software = initiator_.port.software || target_.port.software;
  const PairEnd& end = initiatorMemory == "gpu" ? initiator_ : target_;
  for (Transfer each : mixedTransfers(subject_, plan_, software, {initiatorMemory})) {
    each.gpu = end.gpu ? nameOf(*end.gpu) : "";
    tryTransfer(each);
  }
}

void PairDataPath::trySizes(const std::string& memory) {
  Transfer transfer{subject_, "write", memory};
  transfer.software = initiator_.port.software || target_.port.software;
  concludeWithCounters("peer-sizes-" + memory, sizesOptions(transfer, plan_), transfer,
                       judgePairSizes);
}

bool PairDataPath::tryTransfer(const Transfer& transfer) {
  auto options = transferOptions(transfer);
  options.insert(options.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
  return concludeWithCounters("peer-data-" + transfer.path(), options, transfer, judgePairTransfer);
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
    judgeCounters(initiator_, claimed, sent);
    judgeCounters(target_, claimed, received);
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

void PairDataPath::judgeCounters(const PairEnd& end, std::uint64_t claimedBytes,
                                 const std::optional<VfTraffic>& before) {
  Finding finding = settledTraffic(end.lease, claimedBytes, before, end.traffic);
  finding.subject = end.subject;
  report_.findings.push_back(std::move(finding));
}

}  // namespace vfpass::verify
