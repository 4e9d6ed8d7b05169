#include "pair_data_path.hpp"

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "settled_traffic.hpp"
#include "transfer_options.hpp"
#include "vfpass/agent/exchange.hpp"

namespace vfpass::verify {
namespace {

// Enough to show that replies arrive; latency has its own run.
constexpr const char* reachIterations = "20";
constexpr const char* reachBytes = "8";

std::string newToken() {
  std::random_device random;
  std::ostringstream text;
  for (int word = 0; word < 4; ++word) {
    text << std::hex << random();
  }
  return text.str();
}

}  // namespace

bool PairDataPath::reach() {
  return conclude("peer-reach",
                  {"--operation", "send", "--bytes", reachBytes, "--iterations", reachIterations},
                  [&](const PairReports& reports) { return judgeReach(subject_, reports); });
}

// Both write and read, because peer-to-peer writes work and reads fail on some platforms. Together
// they also cover both directions.
bool PairDataPath::tryMemory(const std::string& memory) {
  Transfer transfer{subject_, "", memory, plan_.messageBytes, plan_.iterations};
  transfer.besideHost = memory == "gpu";
  const bool software = initiator_.port.software || target_.port.software;
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

bool PairDataPath::tryTransfer(const Transfer& transfer) {
  auto options = transferOptions(transfer);
  options.insert(options.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
  const auto sent = watch_.traffic(initiator_.lease);
  const auto received = watch_.traffic(target_.lease);
  const bool passed =
      conclude("peer-data-" + transfer.memory, options, [&](const PairReports& reports) {
        return judgePairTransfer(transfer, reports, report_.figures);
      });
  if (!passed) {
    return false;
  }
  const std::uint64_t claimed = transfer.bytes() * (transfer.besideHost ? 2 : 1);
  judgeCounters(initiator_, claimed, sent);
  judgeCounters(target_, claimed, received);
  return true;
}

template <typename Judge>
bool PairDataPath::conclude(const std::string& key, const std::vector<std::string>& operation,
                            const Judge& judge) {
  Finding finding{key, subject_, Outcome::notObservable, "the probes exchange data", {}, {}};
  try {
    finding = judge(runSession(operation));
  } catch (const Error& error) {
    finding.seen = error.what();
    finding.remedy = error.remedy();
  }
  report_.findings.push_back(finding);
  return finding.outcome == Outcome::passed;
}

void PairDataPath::judgeCounters(const PairEnd& end, std::uint64_t claimedBytes,
                                 const std::optional<VfTraffic>& before) {
  Finding finding = settledTraffic(end.lease, claimedBytes, before, watch_);
  finding.subject = end.subject;
  report_.findings.push_back(std::move(finding));
}

PairReports PairDataPath::runSession(const std::vector<std::string>& operation) const {
  const std::string token = newToken();
  const std::string folder = plan_.folder + "/exchange-" + token;
  auto connect = argumentsFor("connect", initiator_, token);
  connect.insert(connect.end(), operation.begin(), operation.end());
  agent::ExchangeEnd target(target_.agent, target_.probe, folder + "-listen",
                            argumentsFor("listen", target_, token));
  agent::ExchangeEnd initiator(initiator_.agent, initiator_.probe, folder + "-connect", connect);
  relayLines(initiator, target);
  return {probeDocument(initiator_.probe, initiator.result()),
          probeDocument(target_.probe, target.result())};
}

std::vector<std::string> PairDataPath::argumentsFor(const char* command, const PairEnd& end,
                                                    const std::string& token) const {
  std::vector<std::string> arguments{command,
                                     "--device",
                                     end.port.device,
                                     "--ib-port",
                                     std::to_string(end.port.number),
                                     "--token",
                                     token,
                                     "--deadline",
                                     std::to_string(plan_.probeTimeout.count())};
  if (end.gpu) {
    arguments.insert(arguments.end(), {"--gpu", std::to_string(end.gpu->index)});
  }
  return arguments;
}

}  // namespace vfpass::verify
