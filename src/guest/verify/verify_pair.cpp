#include "vfpass/verify/verify_pair.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "after_run.hpp"
#include "all_pairs.hpp"
#include "choose_gpus.hpp"
#include "data_path.hpp"
#include "first_checks.hpp"
#include "judge_bandwidth.hpp"
#include "judge_gpu.hpp"
#include "judge_guest.hpp"
#include "judge_pair.hpp"
#include "transfer_options.hpp"

namespace vfpass::verify {
namespace {

std::optional<VfTraffic> notRead(const Lease& /*lease*/) { return std::nullopt; }

/// One guest, and the state of its verification.
class Party {
 public:
  Party(const PairGuest& guest, std::string prefix, VerifyReport& report)
      : guest_(guest),
        prefix_(std::move(prefix)),
        report_(report),
        assigned_(assignGpus(guest.leases, guest.gpus)),
        coverage_(guest.gpus) {}

  /// False when the guest cannot be inspected; the report then has the failed check.
  bool reach(const agent::ProbeFile& probe, const VerifyPlan& plan, const VerifyWatch& watch) {
    try {
      reachGuest(guest_.agent, probe, plan.folder, watch.pushed, layer_, reached_);
      return true;
    } catch (const Error& error) {
      layer_.reportError(error);
      return false;
    }
  }

  /// This entry's end of the data path; nullopt when a check failed, which is in the report.
  std::optional<PairEnd> endOf(const Lease& lease) {
    const auto host = hostSideOf(lease);
    const DeviceVerdict verdict =
        judgeEntry(lease, reached_.view, host ? &*host : nullptr, guest_.gpus);
    addAll(verdict.findings);
    if (!verdict.port) {
      skipGpus(lease, lease.entry + " failed before");
      return std::nullopt;
    }
    used_.push_back({lease.entry, *verdict.port});
    return PairEnd{guest_.agent,
                   reached_.probe,
                   lease,
                   *verdict.port,
                   host.value_or(HostSide{}),
                   guest_.traffic ? guest_.traffic : notRead,
                   guest_.machine,
                   {},
                   prefix_ + lease.entry,
                   whyNoRdmaCm(reached_.view, *verdict.port)};
  }

  void reportUnobserved() {
    if (!guest_.unobserved.empty()) {
      add(seenByHost({"peer-host", "", Outcome::notObservable, "the VM's host can be asked",
                      guest_.unobserved, guest_.unobservedRemedy}));
    }
  }

  void judgeGpu(GpuTest test) {
    const bool tests = testsGpus(test, guest_.gpus);
    const auto findings =
        tests ? judgeGpus(reached_.view, true, guest_.nvlink, guest_.leases, guest_.gpus)
              : std::vector{gpusNotTested(test, reached_.view)};
    gpuUsable_ = tests && isGpuUsable(findings);
    addAll(findings);
  }

  /// The GPUs that this entry is tested with, with the checks of each. Empty: none can be used, and
  /// the report has the reason, unless the VM has none.
  std::vector<TestedGpu> gpusFor(const PairEnd& end) {
    std::vector<TestedGpu> gpus;
    if (!gpuUsable_) {
      skipUnusableGpus(reached_.view, assigned_[end.lease.entry], coverage_);
      return gpus;
    }
    gpus =
        gpusOf(end.lease.entry, end.port.pci, reached_.view, assigned_[end.lease.entry], coverage_);
    if (gpus.empty() && guest_.gpus.empty()) {
      add(noGpuForCuda(end.lease.entry));
    }
    for (const TestedGpu& gpu : gpus) {
      addAll(judgeGpuPlace(end.lease.entry, reached_.view, end.port.pci, gpu));
    }
    return gpus;
  }

  void skipGpus(const Lease& lease, const std::string& reason) {
    for (const std::size_t each : assigned_[lease.entry]) {
      coverage_.skipped(guest_.gpus[each].entry, reason);
    }
  }

  void skipGpus(const std::vector<TestedGpu>& gpus, const std::string& reason) {
    for (const TestedGpu& gpu : gpus) {
      coverage_.skipped(gpu.entry, reason);
    }
  }

  void record(const PairEnd& end, bool passed) {
    coverage_.tested(*end.gpu, end.lease.entry, passed);
  }

  void reportSystem() {
    addAll(judgeGuestSystem(reached_.view));
    // Why a host that was not asked tells nothing is another finding.
    if (!guest_.placement && guest_.host) {
      add(placementNotReported());
    }
    if (const auto placement =
            guest_.placement ? judgePlacement(*guest_.placement) : std::nullopt) {
      add(*placement);
    }
  }

  void reportAfterRun() {
    readAfterRun();
    addAll(judgeAfterRun(used_, reached_.view, after_));
  }

  /// Quotes the guest's kernel log: at its own findings, and at those of pairs with its name.
  void quoteLog(const std::vector<std::size_t>& ofPairs) {
    readAfterRun();
    quoteLog(own_, "the guest's kernel log");
    quoteLog(ofPairs, "kernel log of " + guest_.domainName);
  }

  /// Indices of this guest's findings in the report.
  [[nodiscard]] const std::vector<std::size_t>& own() const { return own_; }

  void reportCoverage(GpuTest test) {
    if (testsGpus(test, guest_.gpus)) {
      addAll(coverage_.findings());
    }
  }

  void add(Finding finding) {
    finding = withConfinement(std::move(finding), reached_.view.confinedAs);
    finding.subject = prefix_ + finding.subject;
    own_.push_back(report_.findings.size());
    report_.findings.push_back(std::move(finding));
  }
  void addAll(const std::vector<Finding>& findings) {
    for (const Finding& each : findings) {
      add(each);
    }
  }

 private:
  // Asked once; not without a probe.
  void readAfterRun() {
    if (!askedAfterRun_ && !reached_.probe.path.empty()) {
      askedAfterRun_ = true;
      after_ = readErrors(guest_.agent, reached_.probe);
    }
  }

  void quoteLog(const std::vector<std::size_t>& which, const std::string& source) {
    std::vector<Finding> findings;
    for (const std::size_t each : which) {
      findings.push_back(report_.findings[each]);
    }
    quoteKernelLog(findings, after_ ? after_->kernelLog : std::vector<std::string>{}, source);
    for (std::size_t i = 0; i < which.size(); ++i) {
      report_.findings[which[i]] = findings[i];
    }
  }

  // nullopt: its host does not tell; if it failed to, the report says so.
  std::optional<HostSide> hostSideOf(const Lease& lease) {
    if (!guest_.host) {
      return std::nullopt;
    }
    try {
      return guest_.host(lease);
    } catch (const Error& error) {
      add(seenByHost({"device-host", lease.entry, Outcome::notObservable, "the host sees the VF",
                      error.what(), error.remedy()}));
      return std::nullopt;
    }
  }

  const PairGuest& guest_;
  std::string prefix_;
  VerifyReport& report_;
  std::map<std::string, std::vector<std::size_t>> assigned_;
  GpuCoverage coverage_;
  ReachedGuest reached_;
  std::vector<UsedPort> used_;
  std::optional<GuestView> after_;  ///< nullopt: not asked, or not reported
  bool askedAfterRun_ = false;
  std::vector<std::size_t> own_;
  bool gpuUsable_ = false;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

// The PF's own switch passes packets between its VFs, so the data crosses the PF's PCI Express link
// twice and its port never.
Ends endsOf(const PairEnd& near, const PairEnd& far) {
  return near.machine == far.machine && near.lease.pf == far.lease.pf ? Ends::loopback
                                                                      : Ends::apart;
}

Finding insideCard(const std::string& subject, const Lease& lease) {
  return seenByHost(
      {"peer-wire", subject, Outcome::waived, "",
       "both VFs belong to PF " + toString(lease.pf) +
           ": the data stays inside the card and never reaches the wire; bandwidth is "
           "compared with the loopback limit",
       ""});
}

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
    watch_.show("checking both guests");
    const bool near = initiator_.reach(probe, plan_, watch_);
    const bool far = target_.reach(probe, plan_, watch_);
    if (near && far) {
      target_.reportUnobserved();
      initiator_.reportSystem();
      target_.reportSystem();
      initiator_.judgeGpu(plan_.gpuTest);
      target_.judgeGpu(plan_.gpuTest);
      for (const auto& pair : pairs_) {
        part_ = subjectOf(pair) + ", " + std::to_string(++verified_) + " of " +
                std::to_string(pairs_.size());
        verify(pair);
      }
      moveAllTogether();
      reportUnpaired();
      initiator_.reportAfterRun();
      target_.reportAfterRun();
      initiator_.reportCoverage(plan_.gpuTest);
      target_.reportCoverage(plan_.gpuTest);
    }
    // Also of a guest whose probe has started and then failed.
    const auto ofPairs = findingsOfPairs();
    initiator_.quoteLog(ofPairs);
    target_.quoteLog(ofPairs);
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::vector<std::size_t> findingsOfPairs() const {
    std::vector<std::size_t> found;
    for (std::size_t each = 0; each < report_.findings.size(); ++each) {
      const auto isNot = [each](const std::vector<std::size_t>& own) {
        return std::ranges::find(own, each) == own.end();
      };
      if (isNot(initiator_.own()) && isNot(target_.own())) {
        found.push_back(each);
      }
    }
    return found;
  }

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
        initiator_.add(seenByHost({"peer-network", lease.entry,
                                   pairs_.empty() ? Outcome::failed : Outcome::waived,
                                   "a VF of the same link layer in " + targetName_, "none left",
                                   pairs_.empty() ? "name another peer" : ""}));
      }
    }
  }

  void moveAllTogether() {
    if (!plan_.allPairs || working_.empty()) {
      return;
    }
    watch_.show("all pairs at the same time");
    auto withoutGpus = working_;
    for (WorkingPair& pair : withoutGpus) {
      pair.initiator.gpu.reset();
      pair.target.gpu.reset();
    }
    moveTogether(withoutGpus, "host", plan_, report_);
    if (gpuWorksFor_ == working_.size()) {
      moveTogether(working_, "gpu", plan_, report_);
    }
  }

  void verify(const LeasePair& pair) {
    auto near = initiator_.endOf(pair.initiator);
    auto far = target_.endOf(pair.target);
    const std::string subject = subjectOf(pair);
    if (!near || !far || !moveThroughHost(subject, *near, *far)) {
      initiator_.skipGpus(pair.initiator, pair.initiator.entry + " failed before");
      target_.skipGpus(pair.target, pair.target.entry + " failed before");
      return;
    }
    gpuWorksFor_ += moveThroughGpus(subject, *near, *far) ? 1U : 0U;
    working_.push_back({subject, *near, *far});
    addOptional(judgeOrdering(subject, report_.figures));
  }

  bool moveThroughHost(const std::string& subject, const PairEnd& near, const PairEnd& far) {
    watch_.show(part_ + ": host memory");
    const Finding network = judgeNetwork(subject, near.lease, far.lease);
    report_.findings.push_back(network);
    PairDataPath path(subject, near, far, plan_, report_);
    if (network.outcome == Outcome::passed && endsOf(near, far) == Ends::loopback) {
      report_.findings.push_back(insideCard(subject, near.lease));
    }
    if (network.outcome == Outcome::passed) {
      path.ping();
    }
    if (network.outcome != Outcome::passed || !path.reach()) {
      return false;
    }
    path.connectByRdmaCm();
    if (!path.tryMemory("host")) {
      return false;
    }
    if (sizesWanted(plan_)) {
      path.trySizes("host");
    }
    compare(subject, near, far, "host", 0);
    return true;
  }

  // The end with fewer GPUs uses each of them several times.
  // True if GPU memory worked with each of them.
  bool moveThroughGpus(const std::string& subject, PairEnd& near, PairEnd& far) {
    const auto nears = initiator_.gpusFor(near);
    const auto fars = target_.gpusFor(far);
    // Without GPUs at both ends, only mixed memory can be tested.
    if (nears.empty() || fars.empty()) {
      reportMissingGpu(subject, nears, fars);
      moveThroughOneGpu(subject, near, far, nears, fars);
      return false;
    }
    watch_.show(part_ + ": GPU memory");
    bool allPassed = true;
    for (std::size_t i = 0; i < std::max(nears.size(), fars.size()); ++i) {
      // The next pair of GPUs, with their paths on both hosts.
      near.gpu = nears[i % nears.size()];
      far.gpu = fars[i % fars.size()];
      near.host.gpu = near.gpu->path;
      far.host.gpu = far.gpu->path;
      const std::size_t first = report_.figures.size();
      PairDataPath path(subject, near, far, plan_, report_);
      const bool passed = path.tryMemory("gpu");
      allPassed = allPassed && passed;
      initiator_.record(near, passed);
      target_.record(far, passed);
      if (passed) {
        // Figures first, then the transfers that need working GPU memory.
        addOptional(besideHost(subject, near, far, first));
        compare(subject, near, far, "gpu", first);
        path.tryMixedMemory("gpu");
        path.tryMixedMemory("host");
        if (sizesWanted(plan_)) {
          path.trySizes("gpu");
        }
      } else {
        const auto findings = mixedNotTried("peer-data-", subject);
        report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
      }
    }
    return allPassed;
  }

  // GPU memory of the VM that has GPUs, and host memory of the other.
  void moveThroughOneGpu(const std::string& subject, PairEnd& near, PairEnd& far,
                         const std::vector<TestedGpu>& nears, const std::vector<TestedGpu>& fars) {
    PairDataPath path(subject, near, far, plan_, report_);
    for (const TestedGpu& gpu : nears) {
      near.gpu = gpu;
      path.tryMixedMemory("gpu");
    }
    for (const TestedGpu& gpu : fars) {
      far.gpu = gpu;
      path.tryMixedMemory("host");
    }
  }

  // One VM has GPUs and the other none, and nobody excluded GPU memory.
  void reportMissingGpu(const std::string& subject, const std::vector<TestedGpu>& nears,
                        const std::vector<TestedGpu>& fars) {
    if (nears.empty() == fars.empty()) {
      return;
    }
    const std::string without = nears.empty() ? "this VM" : targetName_;
    report_.findings.push_back(
        {"peer-data-gpu", subject, Outcome::notObservable, "GPU memory at both ends",
         "not tested: " + without + " has no GPU to use",
         "choose a peer with a GPU; or exclude GPU memory with verify: {paths: [host]} in the "
         "mapping"});
    initiator_.skipGpus(nears, "no GPU at the other end");
    target_.skipGpus(fars, "no GPU at the other end");
  }

  // The end whose GPU is farther from its NIC on the host explains the figure.
  [[nodiscard]] std::optional<Finding> besideHost(const std::string& subject, const PairEnd& near,
                                                  const PairEnd& far, std::size_t first) const {
    const bool farIsWorse = far.host.gpu && far.host.gpu->throughRootComplex;
    const PairEnd& worse = farIsWorse ? far : near;
    return judgeBesideHost(subject, figuresFrom(first, report_.figures), worse.host.gpu,
                           worse.gpu->distance);
  }

  // Each end has its own limit; the lower one applies.
  void compare(const std::string& subject, const PairEnd& near, const PairEnd& far,
               const char* memory, std::size_t first) {
    const auto limitOfEnd = [&](const PairEnd& end) {
      return limitFor(end.lease, end.port, end.host, memory, endsOf(near, far));
    };
    auto limit = limitOfEnd(near);
    const auto other = limitOfEnd(far);
    if (other && (!limit || other->gigabits < limit->gigabits)) {
      limit = other;
    }
    addOptional(compareWithLimit(subject, memory, near.port, limit, plan_.minimumShare, first,
                                 report_.figures));
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
  std::vector<WorkingPair> working_;
  std::size_t gpuWorksFor_ = 0;  ///< pairs
  std::string part_;             ///< for the progress: the pair and its number
  std::size_t verified_ = 0;
  std::vector<Lease> initiators_;
};

}  // namespace

VerifyReport verifyPair(const PairGuest& initiator, const PairGuest& target,
                        const agent::ProbeFile& probe, const VerifyPlan& plan,
                        const VerifyWatch& watch) {
  return PairVerification(initiator, target, plan, watch).run(probe);
}

}  // namespace vfpass::verify
