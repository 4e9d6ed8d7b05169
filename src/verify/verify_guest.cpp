#include "vfpass/verify/verify_guest.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>

#include "concurrent_tasks.hpp"
#include "first_layers.hpp"
#include "guest_tools.hpp"
#include "independent_vfs.hpp"
#include "judge_confinement.hpp"
#include "judge_cuda.hpp"
#include "verify_vf.hpp"
#include "vfpass/verify/nccl_topology_check.hpp"

namespace vfpass::verify {
namespace {

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

VfGroup allOf(const std::vector<Lease>& leases) {
  VfGroup all(leases.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

template <typename Item>
void append(std::vector<Item>& to, const std::vector<Item>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

bool isSlow(const Finding& finding) {
  return finding.outcome == Outcome::failed && finding.key.starts_with("bandwidth");
}

class Verification {
 public:
  Verification(agent::Agent& agent, const VerifyPlan& plan, const VerifyWatch& watch)
      : agent_(agent),
        plan_(plan),
        watch_(withLock(watch, mutex_)),
        testsGpus_(testsGpus(plan.gpuTest, plan.gpus)) {}

  VerifyReport run(const agent::ProbeFile& probe) {
    try {
      reach(probe);
    } catch (const Error& error) {
      layer_.reportError(error);
    }
    return report_;
  }

 private:
  void reach(const agent::ProbeFile& probe) {
    watch_.show("checking the guest");
    const ReachedGuest guest = reachGuest(agent_, probe, plan_.folder, watch_.pushed, layer_);
    const GuestView& view = guest.view;
    confinedAs_ = view.confinedAs;
    const auto gpus = testsGpus_ ? judgeGpus(view, true, plan_.nvlink)
                                 : std::vector{gpusNotTested(plan_.gpuTest, view)};
    const bool gpuUsable = testsGpus_ && gpus.back().outcome == Outcome::passed;
    layer_.enter("perftest", "the guest can be searched for its own tools");
    const auto tools = plan_.tools ? findTools(agent_) : std::set<std::string>{};
    const GuestUnderTest tested{plan_,     view,  guest.probe,
                                gpuUsable, tools, assignGpus(plan_.leases, plan_.gpus)};
    GpuCoverage coverage(plan_.gpus);
    if (!verifyVfs(tested, coverage)) {
      return;
    }
    if (testsGpus_ && isMirrored()) {
      layer_.enter("nccl-topology", "the guest can be searched for NCCL's topology file");
      add(checkNcclTopology(agent_));
    }
    if (plan_.tools && gpuUsable) {
      watch_.show("nccl-tests");
      layer_.enter("nccl-tests", "nccl-tests run in the guest");
      add(runAllReduce(agent_, tools, view.gpus.size(), report_.figures));
    }
    addAll(gpus);
    if (testsGpus_) {
      addAll(coverage.findings());
    }
  }

  // False if an error stopped one of them.
  bool verifyVfs(const GuestUnderTest& guest, GpuCoverage& coverage) {
    const std::vector<VfGroup> groups = independentVfs(plan_.leases, guest.gpus);
    const std::size_t atOnce = plan_.concurrent ? concurrentGroups(groups.size(), plan_.vcpus) : 1;
    std::vector<std::optional<VfResult>> results(plan_.leases.size());
    if (atOnce == 1) {
      verifyGroup(guest, allOf(plan_.leases), agent_, results);  // no other VF moves data
      return collect(results, coverage);
    }
    std::vector<Task> tasks;
    for (const VfGroup& group : groups) {
      tasks.emplace_back([&, this](const agent::Agent::Checkpoint& checkpoint) {
        verifyGroup(guest, group, agent_.withCheckpoint(checkpoint), results);
      });
    }
    runConcurrently(tasks, atOnce, [this] { agent_.checkpoint(); });
    report_.concurrentVfs = atOnce;
    repeatSlow(guest, results);
    return collect(results, coverage);
  }

  void verifyGroup(const GuestUnderTest& guest, const VfGroup& group, const agent::Agent& agent,
                   std::vector<std::optional<VfResult>>& results) const {
    for (const std::size_t each : group) {
      results[each] = verifyVf(agent, guest, watch_, partOf(each, group));
      if (!results[each]->ended) {
        return;
      }
    }
  }

  // The other VFs may have used what this one lacked, such as the link of a shared switch.
  void repeatSlow(const GuestUnderTest& guest, std::vector<std::optional<VfResult>>& results) {
    for (std::size_t each = 0; each < results.size(); ++each) {
      if (results[each] && std::ranges::any_of(results[each]->report.findings, isSlow)) {
        results[each] = verifyVf(agent_, guest, watch_, partOf(each, allOf(plan_.leases)));
      }
    }
  }

  bool collect(const std::vector<std::optional<VfResult>>& results, GpuCoverage& coverage) {
    bool ended = true;
    for (const auto& each : results) {
      if (each) {
        append(report_.findings, each->report.findings);
        append(report_.figures, each->report.figures);
        coverage.add(each->gpus);
      }
      ended = ended && each && each->ended;
    }
    return ended;
  }

  [[nodiscard]] VfPart partOf(std::size_t lease, const VfGroup& group) const {
    const std::string position = plan_.leases[lease].entry + ", " + std::to_string(lease + 1) +
                                 " of " + std::to_string(plan_.leases.size());
    VfPart part{plan_.leases[lease], position, {}};
    for (const std::size_t each : group) {
      part.idle.push_back(plan_.leases[each]);
    }
    return part;
  }

  [[nodiscard]] bool isMirrored() const {
    return std::ranges::any_of(plan_.leases,
                               [](const Lease& lease) { return lease.guest.isMirrored(); });
  }

  void add(const Finding& finding) {
    report_.findings.push_back(withConfinement(finding, confinedAs_));
  }
  void addAll(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      add(finding);
    }
  }

  agent::Agent& agent_;
  const VerifyPlan& plan_;
  std::mutex mutex_;
  VerifyWatch watch_;
  bool testsGpus_;
  VerifyReport report_;
  std::string confinedAs_;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

}  // namespace

VerifyReport verifyGuest(agent::Agent& agent, const agent::ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  return Verification(agent, plan, watch).run(probe);
}

}  // namespace vfpass::verify
