#include "vfpass/verify/verify_guest.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "after_run.hpp"
#include "choose_gpus.hpp"
#include "concurrent_runs.hpp"
#include "first_checks.hpp"
#include "guest_tools.hpp"
#include "judge_guest.hpp"
#include "party.hpp"
#include "verify_path.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {
namespace {

/// Of each path; nullptr: not verified.
using PathResults = std::vector<std::unique_ptr<PathVerification>>;

std::vector<GuestUnderTest> guestsUnderTest(const std::vector<const PairGuest*>& guests) {
  std::vector<GuestUnderTest> all;
  for (const PairGuest* each : guests) {
    all.push_back(
        {*each, all.empty() ? "" : each->domainName + ":", assignGpus(each->leases, each->gpus)});
  }
  return all;
}

std::size_t gpusOfCuda(const GuestView& view) {
  return static_cast<std::size_t>(
      std::ranges::count_if(view.gpus, [](const GuestGpu& gpu) { return gpu.index.has_value(); }));
}

bool isSlow(const Finding& finding) {
  return finding.outcome == Outcome::failed && finding.key.starts_with("bandwidth");
}

template <typename Item>
void append(std::vector<Item>& to, const std::vector<Item>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

class Verification {
 public:
  /// `guests`: one, whose VFs move data in loopback, or the initiator and the target.
  Verification(const std::vector<const PairGuest*>& guests, const VerifyPlan& plan,
               const VerifyWatch& watch)
      : plan_(plan),
        watch_(watch),
        forRepeats_(plan.probeTimeout),
        guests_(guestsUnderTest(guests)),
        paths_(pairLeases(guests.front()->leases, guests.back()->leases)) {
    for (const GuestUnderTest& each : guests_) {
      parties_.emplace_back(each, report_);
    }
  }

  VerifyReport run(const agent::ProbeFile& probe) {
    watch_.show(isLoopback() ? "checking the guest" : "checking both guests");
    bool reached = true;
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      reached = reach(guests_[i], parties_[i], probe) && reached;
    }
    if (reached) {
      try {
        verify();
      } catch (const Error& error) {
        layer_.reportError(error);
      }
    }
    // Also of a verification that an error ended: the logs may have its reason.
    quoteLogs();
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool isLoopback() const { return guests_.size() == 1; }

  // False when the guest cannot be inspected; the report then has the failed check.
  bool reach(GuestUnderTest& guest, Party& party, const agent::ProbeFile& probe) const {
    Layer layer([&](const Finding& finding) { party.add(finding); });
    try {
      reachGuest(guest.guest.agent, probe, plan_.folder, watch_.pushed, layer, guest.reached);
      return true;
    } catch (const Error& error) {
      layer.reportError(error);
      return false;
    }
  }

  void verify() {
    // What all VFs of a guest have in common: usable GPU memory, and the guest's own tools.
    std::vector<std::vector<Finding>> gpus;
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      parties_[i].reportUnobserved();
      gpus.push_back(judgeGpusOf(guests_[i]));
    }
    if (isLoopback() && plan_.tools) {
      layer_.enter("perftest", "the guest can be searched for its own tools");
      guests_.front().tools = findTools(guests_.front().guest.agent);
    }
    if (!verifyPaths()) {
      return;
    }
    moveAllTogether();
    reportUnpaired();
    // What concerns the whole guest: NCCL, then the GPUs, of which each has to have been tested.
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      parties_[i].addAll(
          judgeAfterRun(parties_[i].used(), guests_[i].reached.view, parties_[i].afterRun()));
    }
    if (isLoopback()) {
      checkNccl(guests_.front(), parties_.front());
    }
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      reportSystem(guests_[i], parties_[i]);
      parties_[i].addAll(gpus[i]);
      parties_[i].reportCoverage(plan_.gpuTest);
    }
  }

  std::vector<Finding> judgeGpusOf(GuestUnderTest& guest) const {
    const PairGuest& own = guest.guest;
    if (!testsGpus(plan_.gpuTest, own.gpus)) {
      return {gpusNotTested(plan_.gpuTest, guest.reached.view)};
    }
    auto findings =
        judgeGpus(guest.reached.view, true, own.nvlink, own.leases, own.gpus, own.fabricManager);
    guest.gpuUsable = isGpuUsable(findings);
    return findings;
  }

  // False if an error stopped one of them.
  bool verifyPaths() {
    const std::vector<VfGroup> groups =
        independentVfs(guests_.front().guest.leases, guests_.front().gpus);
    const std::size_t atOnce =
        plan_.concurrent && isLoopback() ? concurrentGroups(groups.size(), plan_.vcpus) : 1;
    agent::Agent& agent = guests_.front().guest.agent;
    PathResults results(paths_.size());
    if (atOnce == 1) {
      verifyGroup(allPaths(), agent, results);  // no other VF moves data
      return collect(results);
    }
    std::vector<Task> tasks;
    for (const VfGroup& group : groups) {
      tasks.emplace_back([&, this](const agent::Agent::Checkpoint& checkpoint) {
        agent::Agent own = agent.withCheckpoint(checkpoint);
        verifyGroup(group, own, results);
      });
    }
    runConcurrently(tasks, atOnce, [&agent] { agent.checkpoint(); });
    report_.concurrentVfs = atOnce;
    repeatSlow(agent, results);
    return collect(results);
  }

  [[nodiscard]] VfGroup allPaths() const {
    VfGroup all(paths_.size());
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  void verifyGroup(const VfGroup& group, agent::Agent& agent, PathResults& results) const {
    for (const std::size_t each : group) {
      results[each] = verifyPath(each, group, agent);
      if (!results[each]->ended()) {
        return;
      }
    }
  }

  [[nodiscard]] std::unique_ptr<PathVerification> verifyPath(std::size_t which,
                                                             const VfGroup& group,
                                                             agent::Agent& agent) const {
    const auto& [initiator, target] = paths_[which];
    PathPart part;
    part.leases = {initiator, target};
    part.subject = initiator.entry;
    if (isLoopback()) {
      for (const std::size_t each : group) {
        part.idle.push_back(paths_[each].initiator);
      }
    } else {
      part.subject += " - " + guests_.back().prefix + target.entry;
    }
    part.position =
        part.subject + ", " + std::to_string(which + 1) + " of " + std::to_string(paths_.size());
    auto path = std::make_unique<PathVerification>(guests_, std::move(part), plan_, watch_);
    path->run(agent);
    return path;
  }

  // The other VFs may have used what this one lacked, such as the link of a shared switch. What an
  // error ends says less than what was measured before.
  void repeatSlow(agent::Agent& agent, PathResults& results) {
    for (std::size_t each = 0; each < results.size(); ++each) {
      const std::string& entry = paths_[each].initiator.entry;
      if (!results[each] || !isTooSlow(entry, results[each]->report())) {
        continue;
      }
      auto alone = verifyPath(each, allPaths(), agent);
      if (alone->ended()) {
        report_.together[entry] = std::move(results[each]->report().figures);
        results[each] = std::move(alone);
      }
    }
  }

  [[nodiscard]] bool isTooSlow(const std::string& entry, const VerifyReport& report) const {
    return std::ranges::any_of(report.findings, isSlow) ||
           (plan_.isSlow && !forRepeats_.over() && plan_.isSlow(entry, report.figures));
  }

  bool collect(const PathResults& results) {
    bool ended = true;
    for (const auto& each : results) {
      ended = ended && each && each->ended();
      if (!each) {
        continue;
      }
      for (std::size_t i = 0; i < parties_.size(); ++i) {
        parties_[i].take(each->parties()[i], report_.findings.size());
      }
      append(report_.findings, each->report().findings);
      append(report_.figures, each->report().figures);
      if (const auto pair = each->working()) {
        working_.push_back(*pair);
        gpusPassed_ = gpusPassed_ && each->gpusPassed();
      }
    }
    return ended;
  }

  void moveAllTogether() {
    if (!plan_.allPairs || working_.empty()) {
      return;
    }
    watch_.show("all pairs at the same time");
    layer_.enter("all-pairs", "all pairs move data at the same time");
    auto withoutGpus = working_;
    for (WorkingPair& pair : withoutGpus) {
      pair.initiator.gpu.reset();
      pair.target.gpu.reset();
    }
    moveTogether(withoutGpus, "host", plan_, report_);
    if (gpusPassed_) {
      moveTogether(working_, "gpu", plan_, report_);
    }
  }

  // An entry without a counterpart is waived. Without any pair the verification fails, since
  // nothing was tested.
  void reportUnpaired() {
    for (const Lease& lease : guests_.front().guest.leases) {
      const bool paired = std::ranges::any_of(
          paths_, [&](const LeasePair& each) { return each.initiator.entry == lease.entry; });
      if (!paired) {
        parties_.front().add(seenByHost(
            {"peer-network", lease.entry, paths_.empty() ? Outcome::failed : Outcome::waived,
             "a VF of the same link layer in " + guests_.back().guest.domainName, "none left",
             paths_.empty() ? "name another peer" : ""}));
      }
    }
  }

  void checkNccl(const GuestUnderTest& guest, Party& party) {
    agent::Agent& agent = guest.guest.agent;
    const auto& leases = guest.guest.leases;
    const bool isMirrored =
        std::ranges::any_of(leases, [](const Lease& lease) { return lease.guest.isMirrored(); });
    if (testsGpus(plan_.gpuTest, guest.guest.gpus) && isMirrored) {
      layer_.enter("nccl-topology", "the guest can be searched for NCCL's topology file");
      party.add(judgeNcclTopology(agent, guestSetupOf(leases), devicesIn(guest, party.used())));
    }
    if (plan_.tools && guest.gpuUsable) {
      watch_.show("nccl-tests");
      layer_.enter("nccl-tests", "nccl-tests run in the guest");
      if (guest.tools.contains(allReduceTest)) {
        party.askAgain();  // it may add to the kernel log
      }
      party.add(runAllReduce(agent, guest.tools, gpusOfCuda(guest.reached.view), report_.figures));
    }
  }

  // The VFs that were found in the guest, and the leased GPUs.
  [[nodiscard]] std::vector<NcclFileDevice> devicesIn(const GuestUnderTest& guest,
                                                      const std::vector<UsedPort>& used) const {
    std::vector<NcclFileDevice> devices;
    const auto addAt = [&](const std::string& pci, const std::string& entry) {
      if (const auto address = parsePciAddress(pci)) {
        const auto link = plan_.links.find(entry);
        devices.push_back({*address, link == plan_.links.end() ? PcieLink{} : link->second});
      }
    };
    for (const UsedPort& each : used) {
      addAt(each.port.pci, each.subject);
    }
    for (const LeasedGpu& each : guest.guest.gpus) {
      const GuestGpu* gpu = gpuAtPlaceOf(guest.reached.view, each);
      addAt(gpu == nullptr ? "" : gpu->pci, each.entry);
    }
    return devices;
  }

  void reportSystem(const GuestUnderTest& guest, Party& party) const {
    party.addAll(judgeGuestSystem(guest.reached.view));
    if (guest.guest.placement) {
      party.addOptional(judgePlacement(*guest.guest.placement));
    } else if (!isLoopback() && guest.guest.host) {
      // Why a host that was not asked tells nothing is another finding.
      party.add(placementNotReported());
    }
  }

  // At each guest's own findings, and with its name at those of pairs.
  void quoteLogs() {
    const auto ofPaths = findingsOfPaths();
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      const std::string own = "the guest's kernel log";
      parties_[i].quoteLog(parties_[i].own(), own);
      parties_[i].quoteLog(ofPaths,
                           isLoopback() ? own : "kernel log of " + guests_[i].guest.domainName);
    }
  }

  [[nodiscard]] std::vector<std::size_t> findingsOfPaths() const {
    std::vector<std::size_t> found;
    for (std::size_t each = 0; each < report_.findings.size(); ++each) {
      const auto owns = [each](const Party& party) {
        return std::ranges::find(party.own(), each) != party.own().end();
      };
      if (std::ranges::none_of(parties_, owns)) {
        found.push_back(each);
      }
    }
    return found;
  }

  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  Deadline forRepeats_;  ///< the checks that follow need time as well
  VerifyReport report_;
  std::vector<GuestUnderTest> guests_;
  std::vector<Party> parties_;    ///< of each guest
  std::vector<LeasePair> paths_;  ///< in a loopback, each VF with itself
  std::vector<WorkingPair> working_;
  bool gpusPassed_ = true;  ///< of all working pairs
  Layer layer_{[this](const Finding& finding) { parties_.front().add(finding); }};
};

template <typename Result, typename Argument>
std::function<Result(Argument)> locked(const std::function<Result(Argument)>& call,
                                       std::mutex& mutex) {
  if (!call) {
    return nullptr;
  }
  return [&mutex, call](Argument argument) {
    const std::lock_guard lock(mutex);
    return call(argument);
  };
}

// The host's observations from several threads: kernel, libvirt and terminal are not thread-safe
// here.
VerifyWatch withLock(VerifyWatch watch, std::mutex& mutex) {
  watch.traffic = locked(watch.traffic, mutex);
  watch.host = locked(watch.host, mutex);
  watch.progress = locked(watch.progress, mutex);
  return watch;
}

}  // namespace

VerifyReport verifyGuest(agent::Agent& agent, const agent::ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  std::mutex mutex;
  const VerifyWatch safe = withLock(watch, mutex);
  PairGuest guest{agent, "", plan.leases, safe.host, safe.traffic, plan.nvlink, plan.gpus};
  guest.placement = plan.placement;
  guest.fabricManager = plan.fabricManager;
  return Verification({&guest}, plan, safe).run(probe);
}

VerifyReport verifyPair(const PairGuest& initiator, const PairGuest& target,
                        const agent::ProbeFile& probe, const VerifyPlan& plan,
                        const VerifyWatch& watch) {
  return Verification({&initiator, &target}, plan, watch).run(probe);
}

}  // namespace vfpass::verify
