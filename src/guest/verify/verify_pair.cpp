#include "vfpass/verify/verify_pair.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "concurrent_runs.hpp"
#include "data_path.hpp"
#include "judge_bandwidth.hpp"
#include "judge_guest.hpp"
#include "judge_pair.hpp"
#include "pair_party.hpp"
#include "transfer_options.hpp"

namespace vfpass::verify {
namespace {

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
  PairParty initiator_;
  PairParty target_;
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

namespace {

template <typename Match>
void takePairs(std::vector<Lease>& initiators, std::vector<Lease>& targets,
               std::vector<LeasePair>& pairs, const Match& match) {
  for (auto initiator = initiators.begin(); initiator != initiators.end();) {
    const auto target =
        std::ranges::find_if(targets, [&](const Lease& each) { return match(*initiator, each); });
    if (target == targets.end()) {
      ++initiator;
      continue;
    }
    pairs.push_back({*initiator, *target});
    targets.erase(target);
    initiator = initiators.erase(initiator);
  }
}

}  // namespace

std::vector<LeasePair> pairLeases(const std::vector<Lease>& initiators,
                                  const std::vector<Lease>& targets) {
  std::vector<Lease> near = initiators;
  std::vector<Lease> far = targets;
  std::vector<LeasePair> pairs;
  takePairs(near, far, pairs,
            [](const Lease& one, const Lease& other) { return one.entry == other.entry; });
  takePairs(near, far, pairs, [](const Lease& one, const Lease& other) {
    return vfOf(one).infiniband == vfOf(other).infiniband;
  });
  return pairs;
}

}  // namespace vfpass::verify
