#include "vfpass/verify/verify_pair.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "first_layers.hpp"
#include "judge_bandwidth.hpp"
#include "judge_gpu_place.hpp"
#include "pair_data_path.hpp"

namespace vfpass::verify {
namespace {

/// One guest, and the state of its verification.
class Party {
 public:
  Party(const PairGuest& guest, std::string prefix, VerifyReport& report)
      : guest_(guest), prefix_(std::move(prefix)), report_(report) {}

  /// False when the guest cannot be inspected; the report then has the failed check.
  bool reach(const agent::ProbeFile& probe, const VerifyPlan& plan, const VerifyWatch& watch) {
    try {
      reached_ = reachGuest(guest_.agent, probe, plan.folder, watch.pushed, layer_);
      return true;
    } catch (const Error& error) {
      layer_.reportError(error);
      return false;
    }
  }

  /// This entry's end of the data path; nullopt when a check failed, which is in the report.
  std::optional<PairEnd> endOf(const Lease& lease, bool gpuWanted) {
    const HostSide host = guest_.host ? guest_.host(lease) : HostSide{};
    const DeviceVerdict verdict = judgeEntry(lease, reached_.view, guest_.host ? &host : nullptr);
    addAll(verdict.findings);
    if (!verdict.port) {
      return std::nullopt;
    }
    PairEnd end{guest_.agent, reached_.probe,       lease, *verdict.port, host,
                {},           prefix_ + lease.entry};
    if (gpuWanted && gpuUsable_) {
      end.gpu = nearestGpu(reached_.view, end.port.pci);
      addAll(end.gpu ? judgeGpuPlace(lease.entry, reached_.view, end.port.pci, *end.gpu, host.gpu)
                     : std::vector{noGpuForCuda(lease.entry)});
    }
    return end;
  }

  void judgeGpu(bool wanted) {
    const auto findings = judgeGpus(reached_.view, wanted, guest_.nvlink);
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

 private:
  const PairGuest& guest_;
  std::string prefix_;
  VerifyReport& report_;
  ReachedGuest reached_;
  bool gpuUsable_ = false;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
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

  VerifyReport run(const agent::ProbeFile& probe) {
    const bool near = initiator_.reach(probe, plan_, watch_);
    const bool far = target_.reach(probe, plan_, watch_);
    if (near && far) {
      initiator_.judgeGpu(plan_.gpuWanted);
      target_.judgeGpu(plan_.gpuWanted);
      for (const auto& pair : pairs_) {
        verify(pair);
      }
      reportUnpaired();
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::string subjectOf(const LeasePair& pair) const {
    return pair.initiator.entry + " - " + targetName_ + ":" + pair.target.entry;
  }

  // An entry without a counterpart is waived. Without any pair the verification fails, since
  // nothing was tested.
  void reportUnpaired() {
    for (const auto& lease : initiators_) {
      const bool paired = std::ranges::any_of(
          pairs_, [&](const LeasePair& each) { return each.initiator.entry == lease.entry; });
      if (!paired) {
        initiator_.add({"peer-network", lease.entry,
                        pairs_.empty() ? Outcome::failed : Outcome::waived,
                        "a VF of the same link layer in " + targetName_, "none left",
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
    const std::string subject = subjectOf(pair);
    const Finding network = judgeNetwork(subject, pair.initiator, pair.target);
    report_.findings.push_back(network);
    PairDataPath path(subject, *near, *far, plan_, watch_, report_);
    if (network.outcome != Outcome::passed || !path.reach() || !path.tryMemory("host")) {
      return;
    }
    compare(subject, *near, *far, "host");
    if (near->gpu && far->gpu && path.tryMemory("gpu")) {
      addOptional(besideHost(subject, *near, *far));
      compare(subject, *near, *far, "gpu");
    }
    addOptional(judgeOrdering(subject, report_.figures));
  }

  // The end whose GPU is farther from its NIC on the host explains the figure.
  [[nodiscard]] std::optional<Finding> besideHost(const std::string& subject, const PairEnd& near,
                                                  const PairEnd& far) const {
    const bool farIsWorse = far.host.gpu && far.host.gpu->throughRootComplex;
    const PairEnd& worse = farIsWorse ? far : near;
    return judgeBesideHost(subject, report_.figures, worse.host.gpu, worse.gpu->distance);
  }

  // Each end has its own limit; the lower one applies.
  void compare(const std::string& subject, const PairEnd& near, const PairEnd& far,
               const char* memory) {
    const auto limitOfEnd = [&](const PairEnd& end) {
      return limitFor(end.lease, end.port, end.host, memory, Ends::apart);
    };
    auto limit = limitOfEnd(near);
    const auto other = limitOfEnd(far);
    if (other && (!limit || other->gigabits < limit->gigabits)) {
      limit = other;
    }
    for (Figure& figure : report_.figures) {
      if (limit && figure.subject == subject && figure.memory == memory &&
          figure.gigabitsPerSecond > 0) {
        figure.limit = limit->gigabits;
      }
    }
    if (plan_.minimumShare) {
      report_.findings.push_back(
          judgeBandwidth(subject, memory, near.port, limit, *plan_.minimumShare, report_.figures));
    }
  }

  void addOptional(const std::optional<Finding>& finding) {
    if (finding) {
      report_.findings.push_back(*finding);
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

VerifyReport verifyPair(const PairGuest& initiator, const PairGuest& target,
                        const agent::ProbeFile& probe, const VerifyPlan& plan,
                        const VerifyWatch& watch) {
  return PairVerification(initiator, target, plan, watch).run(probe);
}

}  // namespace vfpass::verify
