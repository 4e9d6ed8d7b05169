#include "vfpass/guest/verify_pair.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "first_layers.hpp"
#include "judge_bandwidth.hpp"
#include "judge_gpu_place.hpp"
#include "judge_pair.hpp"

namespace vfpass::guest {
namespace {

using Json = nlohmann::json;

// Firmware counts a little late.
constexpr std::chrono::milliseconds countersSettle{3000};
// Enough for a median; each is a round trip between two guests.
constexpr std::uint64_t reachIterations = 20;
constexpr std::uint64_t reachBytes = 8;

std::string newToken() {
  std::random_device random;
  std::ostringstream text;
  for (int word = 0; word < 4; ++word) {
    text << std::hex << random();
  }
  return text.str();
}

/// One end of a data path.
struct End {
  Lease lease;
  RdmaPort port;
  HostSide host;
  std::optional<NearestGpu> gpu;
};

/// One guest and how far we have come in it.
class Party {
 public:
  Party(const PairGuest& guest, std::string prefix, VerifyReport& report)
      : guest_(guest), prefix_(std::move(prefix)), report_(report) {}

  /// False when the guest does not let us look; the report says where it ended.
  bool reach(const ProbeFile& probe, const VerifyPlan& plan, const VerifyWatch& watch) {
    try {
      reached_ = reachGuest(guest_.agent, probe, plan.folder, watch.pushed, layer_);
      return true;
    } catch (const Error& error) {
      layer_.broken(error);
      return false;
    }
  }

  /// This entry's end; nullopt when a link before it is broken, which the report names.
  std::optional<End> endOf(const Lease& lease, bool gpuWanted) {
    const HostSide host = guest_.host ? guest_.host(lease) : HostSide{};
    const DeviceVerdict verdict = judgeEntry(lease, reached_.view, guest_.host ? &host : nullptr);
    addAll(verdict.findings);
    if (!verdict.port) {
      return std::nullopt;
    }
    End end{lease, *verdict.port, host, std::nullopt};
    if (gpuWanted && gpuUsable_) {
      end.gpu = nearestGpu(reached_.view, end.port.pci);
    }
    if (end.gpu) {
      addAll(judgeGpuPlace(lease.vfName, reached_.view, end.port.pci, *end.gpu));
    }
    return end;
  }

  void judgeGpu(bool wanted) {
    const auto findings = judgeGpus(reached_.view, wanted);
    gpuUsable_ = findings.back().outcome == Outcome::passed;
    addAll(findings);
  }

  void add(Finding finding) {
    finding.subject = prefix_ + finding.subject;
    report_.findings.push_back(std::move(finding));
  }
  void addAll(const std::vector<Finding>& findings) {
    for (const Finding& each : findings) {
      add(each);
    }
  }

  [[nodiscard]] Agent& agent() const { return guest_.agent; }
  [[nodiscard]] const PlacedProbe& probe() const { return reached_.probe; }

 private:
  const PairGuest& guest_;
  std::string prefix_;
  VerifyReport& report_;
  ReachedGuest reached_;
  bool gpuUsable_ = false;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

/// Both ends of a data path, and what the reports call it.
struct Path {
  std::string subject;
  End initiator;
  End target;
};

class PairVerification {
 public:
  PairVerification(const PairGuest& initiator, const PairGuest& target, const VerifyPlan& plan,
                   const VerifyWatch& watch)
      : targetName_(target.domainName),
        plan_(plan),
        watch_(watch),
        initiator_(initiator, "", report_),
        target_(target, targetName_ + ":", report_),
        pairs_(pairLeases(initiator.leases, target.leases)),
        initiators_(initiator.leases) {}

  VerifyReport run(const ProbeFile& probe) {
    const bool near = initiator_.reach(probe, plan_, watch_);
    const bool far = target_.reach(probe, plan_, watch_);
    if (near && far) {
      initiator_.judgeGpu(plan_.gpuWanted);
      target_.judgeGpu(plan_.gpuWanted);
      for (const auto& pair : pairs_) {
        verify(pair);
      }
      reportAlone();
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::string subjectOf(const LeasePair& pair) const {
    return pair.initiator.vfName + " - " + targetName_ + ":" + pair.target.vfName;
  }

  // An entry without a counterpart is not a fault of the VM; no pair at all proves nothing.
  void reportAlone() {
    for (const auto& lease : initiators_) {
      const bool paired = std::ranges::any_of(
          pairs_, [&](const LeasePair& each) { return each.initiator.vfName == lease.vfName; });
      if (!paired) {
        initiator_.add({"peer-network", lease.vfName,
                        pairs_.empty() ? Outcome::failed : Outcome::waived,
                        "a VF of the same link layer in " + targetName_, "none is left",
                        pairs_.empty() ? "name another peer" : ""});
      }
    }
  }

  void verify(const LeasePair& pair) {
    const auto near = initiator_.endOf(pair.initiator, plan_.gpuWanted);
    const auto far = target_.endOf(pair.target, plan_.gpuWanted);
    if (!near || !far) {
      return;
    }
    const Path path{subjectOf(pair), *near, *far};
    const Finding network = judgeNetwork(path.subject, pair.initiator, pair.target);
    report_.findings.push_back(network);
    if (network.outcome != Outcome::passed || !reach(path) || !tryMemory(path, "host")) {
      return;
    }
    compare(path, "host");
    if (near->gpu && far->gpu && tryMemory(path, "gpu")) {
      compare(path, "gpu");
    }
  }

  bool reach(const Path& path) {
    return conclude("peer-reach", path,
                    {"--operation", "send", "--bytes", std::to_string(reachBytes), "--iterations",
                     std::to_string(reachIterations)},
                    [&](const PairReports& reports) {
                      return judgeReach(path.subject, reports, report_.figures);
                    });
  }

  // Write and read, because some platforms pass peer writes and fail peer reads; they also are the
  // two directions.
  bool tryMemory(const Path& path, const char* memory) {
    for (const char* operation : {"write", "read"}) {
      const Transfer transfer{path.subject, operation, memory, plan_.messageBytes,
                              plan_.iterations};
      const auto sent = watch_.traffic(path.initiator.lease);
      const auto received = watch_.traffic(path.target.lease);
      const std::string key = std::string("peer-data-") + memory;
      const bool right = conclude(key, path, optionsOf(transfer), [&](const PairReports& reports) {
        return judgePairTransfer(transfer, reports, report_.figures);
      });
      if (!right) {
        return false;
      }
      initiator_.add(settledTraffic(path.initiator.lease, transfer, sent));
      target_.add(settledTraffic(path.target.lease, transfer, received));
    }
    return true;
  }

  // Each end has a limit of its own; the lower one counts.
  void compare(const Path& path, const char* memory) {
    const auto limitOfEnd = [&](const End& end) {
      return limitFor(end.lease, end.port, end.host, memory, Ends::apart);
    };
    auto limit = limitOfEnd(path.initiator);
    const auto other = limitOfEnd(path.target);
    if (other && (!limit || other->gigabits < limit->gigabits)) {
      limit = other;
    }
    for (Figure& figure : report_.figures) {
      if (limit && figure.subject == path.subject && figure.memory == memory &&
          figure.gigabitsPerSecond > 0) {
        figure.limit = limit->gigabits;
      }
    }
    if (plan_.minimumShare) {
      report_.findings.push_back(judgeBandwidth(path.subject, memory, path.initiator.port, limit,
                                                *plan_.minimumShare, report_.figures));
    }
  }

  template <typename Judge>
  bool conclude(const std::string& key, const Path& path, const std::vector<std::string>& operation,
                const Judge& judge) {
    Finding finding{key, path.subject, Outcome::notObservable, "the two probes move data", {}, {}};
    try {
      finding = judge(runSession(path, operation));
    } catch (const Error& error) {
      finding.seen = error.what();
      finding.remedy = error.remedy();
    }
    report_.findings.push_back(finding);
    return finding.outcome == Outcome::passed;
  }

  [[nodiscard]] std::vector<std::string> optionsOf(const Transfer& transfer) const {
    std::vector<std::string> options{"--operation",
                                     transfer.operation,
                                     "--bytes",
                                     std::to_string(transfer.messageBytes),
                                     "--iterations",
                                     std::to_string(transfer.iterations),
                                     "--initiator-memory",
                                     transfer.memory,
                                     "--target-memory",
                                     transfer.memory};
    options.insert(options.end(), plan_.probeArguments.begin(), plan_.probeArguments.end());
    return options;
  }

  [[nodiscard]] std::vector<std::string> argumentsFor(const char* command, const End& end,
                                                      const std::string& token) const {
    std::vector<std::string> arguments{command,
                                       "--device",
                                       end.port.device,
                                       "--ib-port",
                                       std::to_string(end.port.number),
                                       "--token",
                                       token,
                                       "--deadline",
                                       std::to_string(plan_.probePatience.count())};
    if (end.gpu) {
      arguments.insert(arguments.end(), {"--gpu", std::to_string(end.gpu->index)});
    }
    return arguments;
  }

  [[nodiscard]] PairReports runSession(const Path& path,
                                       const std::vector<std::string>& operation) const {
    const std::string token = newToken();
    const std::string folder = plan_.folder + "/exchange-" + token;
    auto connect = argumentsFor("connect", path.initiator, token);
    connect.insert(connect.end(), operation.begin(), operation.end());
    ExchangeEnd target(target_.agent(), target_.probe(), folder,
                       argumentsFor("listen", path.target, token));
    ExchangeEnd initiator(initiator_.agent(), initiator_.probe(), folder, connect);
    carryLines(initiator, target);
    return {probeDocument(initiator_.probe(), initiator.result()),
            probeDocument(target_.probe(), target.result())};
  }

  Finding settledTraffic(const Lease& lease, const Transfer& transfer,
                         const std::optional<VfTraffic>& before) const {
    const auto end = std::chrono::steady_clock::now() + countersSettle;
    for (;;) {
      const Finding found =
          judgeTraffic(lease.vfName, transfer.bytes(), before, watch_.traffic(lease));
      if (found.outcome != Outcome::failed || std::chrono::steady_clock::now() >= end) {
        return found;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  std::string targetName_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport report_;
  Party initiator_;
  Party target_;
  std::vector<LeasePair> pairs_;
  std::vector<Lease> initiators_;
};

}  // namespace

VerifyReport verifyPair(const PairGuest& initiator, const PairGuest& target, const ProbeFile& probe,
                        const VerifyPlan& plan, const VerifyWatch& watch) {
  return PairVerification(initiator, target, plan, watch).run(probe);
}

}  // namespace vfpass::guest
