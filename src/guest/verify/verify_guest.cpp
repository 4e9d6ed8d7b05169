#include "vfpass/verify/verify_guest.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "after_run.hpp"
#include "choose_gpus.hpp"
#include "concurrent_runs.hpp"
#include "data_path.hpp"
#include "first_checks.hpp"
#include "guest_tools.hpp"
#include "guest_view.hpp"
#include "judge_bandwidth.hpp"
#include "judge_guest.hpp"
#include "transfer_options.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::verify {
namespace {

/// What all VFs of one verification have in common. Only read, so threads may share it.
struct GuestUnderTest {
  const VerifyPlan& plan;
  const GuestView& view;
  const agent::PlacedProbe& probe;
  bool gpuUsable = false;       ///< GPU memory is tested, and the guest can use it for RDMA
  std::set<std::string> tools;  ///< perftest and nccl-tests in the guest
  std::map<std::string, std::vector<std::size_t>> gpus;  ///< assignGpus()
};

/// The results for one VF.
struct VfResult {
  VerifyReport report;                ///< findings and figures
  GpuCoverage gpus;                   ///< those tested with this VF
  std::optional<RdmaPort> port = {};  ///< set when data was moved
  bool ended = true;                  ///< false: an error, which is the last finding, stopped it
};

/// One VF's part of a verification.
struct VfPart {
  const Lease& lease;
  std::string position;     ///< for the progress, such as `rail0, 1 of 8`
  std::vector<Lease> idle;  ///< the guest's VFs over which no other part moves data meanwhile
};

class VfVerification {
 public:
  VfVerification(agent::Agent agent, const GuestUnderTest& guest, const VerifyWatch& watch,
                 const VfPart& part)
      : agent_(std::move(agent)),
        guest_(guest),
        watch_(watch),
        part_(part),
        lease_(part.lease),
        result_{{}, GpuCoverage(guest.plan.gpus)} {}

  VfResult run() {
    try {
      verify();
    } catch (const Error& error) {
      layer_.reportError(error);
      result_.ended = false;
    }
    return std::move(result_);
  }

 private:
  void verify() {
    layer_.enter("device-host", "the host sees the VF");
    const HostSide host = watch_.host ? watch_.host(lease_) : HostSide{};
    const DeviceVerdict device =
        judgeEntry(lease_, guest_.view, watch_.host ? &host : nullptr, guest_.plan.gpus);
    addAll(device.findings);
    watch_.show(part_.position + ": host memory");
    layer_.enter("data-host", "the probe moves data");
    if (!device.port) {
      skipGpus(lease_.entry + " failed before");
      return;
    }
    result_.port = device.port;
    LoopbackDataPath path({agent_, guest_.probe, watch_, part_.idle}, lease_, *device.port,
                          guest_.plan, result_.report);
    if (!path.tryMemory(std::nullopt)) {
      skipGpus(lease_.entry + " failed before");
      return;
    }
    if (sizesWanted(guest_.plan)) {
      path.trySizes(std::nullopt);
    }
    if (guest_.gpuUsable) {
      verifyGpus(*device.port, host, path);
    } else {
      skipUnusableGpus(guest_.view, ownGpus(), result_.gpus);
    }
    runTools(*device.port, std::nullopt);
    compare(*device.port, host, "host", 0);
    addOptional(judgeOrdering(lease_.entry, result_.report.figures));
  }

  void verifyGpus(const RdmaPort& port, const HostSide& host, LoopbackDataPath& path) {
    const auto gpus = gpusOf(lease_.entry, port.pci, guest_.view, ownGpus(), result_.gpus);
    if (gpus.empty() && guest_.plan.gpus.empty()) {
      add(noGpuForCuda(lease_.entry));
    }
    for (const TestedGpu& gpu : gpus) {
      result_.gpus.tested(gpu, lease_.entry, verifyGpu(port, host, path, gpu));
    }
  }

  bool verifyGpu(const RdmaPort& port, HostSide host, LoopbackDataPath& path,
                 const TestedGpu& gpu) {
    host.gpu = gpu.path;
    addAll(judgeGpuPlace(lease_.entry, guest_.view, port.pci, gpu));
    watch_.show(part_.position + ": GPU memory");
    layer_.enter("data-gpu", "the probe moves data");
    const std::size_t first = result_.report.figures.size();
    if (!path.tryMemory(gpu)) {
      addAll(mixedNotTried("data-", lease_.entry));
      return false;
    }
    path.tryMixedMemory(gpu);
    if (sizesWanted(guest_.plan)) {
      path.trySizes(gpu);
    }
    addOptional(judgeBesideHost(lease_.entry, figuresFrom(first, result_.report.figures), gpu.path,
                                gpu.distance));
    runTools(port, gpu);
    compare(port, host, "gpu", first);
    return true;
  }

  void skipGpus(const std::string& reason) {
    for (const std::size_t each : ownGpus()) {
      result_.gpus.skipped(guest_.plan.gpus[each].entry, reason);
    }
  }

  void runTools(const RdmaPort& port, const std::optional<TestedGpu>& gpu) {
    if (guest_.plan.tools) {
      layer_.enter("perftest", "the guest's own perftest runs");
      add(runPerftest(agent_, guest_.tools, port,
                      {lease_.entry, guest_.plan.messageBytes, guest_.plan.iterations, gpu},
                      result_.report.figures));
    }
  }

  // Both ends are on one port, hence the loopback limit.
  void compare(const RdmaPort& port, const HostSide& host, const char* memory, std::size_t first) {
    addOptional(compareWithLimit(lease_.entry, memory, port,
                                 limitFor(lease_, port, host, memory, Ends::loopback),
                                 guest_.plan.minimumShare, first, result_.report.figures));
  }

  [[nodiscard]] std::vector<std::size_t> ownGpus() const {
    const auto found = guest_.gpus.find(lease_.entry);
    return found == guest_.gpus.end() ? std::vector<std::size_t>{} : found->second;
  }

  void add(const Finding& finding) {
    result_.report.findings.push_back(withConfinement(finding, guest_.view.confinedAs));
  }
  void addAll(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      add(finding);
    }
  }
  void addOptional(const std::optional<Finding>& finding) {
    if (finding) {
      add(*finding);
    }
  }

  agent::Agent agent_;
  const GuestUnderTest& guest_;
  const VerifyWatch& watch_;
  const VfPart& part_;
  const Lease& lease_;
  VfResult result_;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

/// Verifies one VF: device, RDMA, host memory, then the memory of its GPUs; stops at the first
/// failed check. Threads may verify different VFs at the same time if each has its own agent and
/// `watch` is thread-safe.
VfResult verifyVf(const agent::Agent& agent, const GuestUnderTest& guest, const VerifyWatch& watch,
                  const VfPart& part) {
  return VfVerification(agent, guest, watch, part).run();
}

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

std::size_t gpusOfCuda(const GuestView& view) {
  return static_cast<std::size_t>(
      std::ranges::count_if(view.gpus, [](const GuestGpu& gpu) { return gpu.index.has_value(); }));
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
        testsGpus_(testsGpus(plan.gpuTest, plan.gpus)),
        forRepeats_(plan.probeTimeout) {}

  VerifyReport run(const agent::ProbeFile& probe) {
    try {
      reach(probe);
    } catch (const Error& error) {
      layer_.reportError(error);
    }
    // Also of a verification that an error ended: the log may have its reason.
    if (const auto& after = viewAfterRun()) {
      quoteKernelLog(report_.findings, after->kernelLog);
    }
    return report_;
  }

 private:
  void reach(const agent::ProbeFile& probe) {
    watch_.show("checking the guest");
    reachGuest(agent_, probe, plan_.folder, watch_.pushed, layer_, guest_);
    const GuestView& view = guest_.view;
    confinedAs_ = view.confinedAs;
    // What all VFs have in common: usable GPU memory, and the guest's own tools.
    const auto gpus = testsGpus_ ? judgeGpus(view, true, plan_.nvlink, plan_.leases, plan_.gpus)
                                 : std::vector{gpusNotTested(plan_.gpuTest, view)};
    const bool gpuUsable = testsGpus_ && isGpuUsable(gpus);
    layer_.enter("perftest", "the guest can be searched for its own tools");
    const auto tools = plan_.tools ? findTools(agent_) : std::set<std::string>{};
    const GuestUnderTest tested{plan_,     view,  guest_.probe,
                                gpuUsable, tools, assignGpus(plan_.leases, plan_.gpus)};
    GpuCoverage coverage(plan_.gpus);
    if (!verifyVfs(tested, coverage)) {
      return;
    }
    addAll(judgeAfterRun(used_, view, viewAfterRun()));
    // What concerns the whole guest: NCCL, then the GPUs, of which each has to have been tested.
    if (testsGpus_ && isMirrored()) {
      layer_.enter("nccl-topology", "the guest can be searched for NCCL's topology file");
      add(judgeNcclTopology(agent_, guestSetupOf(plan_.leases), devicesIn(view)));
    }
    if (plan_.tools && gpuUsable) {
      watch_.show("nccl-tests");
      layer_.enter("nccl-tests", "nccl-tests run in the guest");
      if (tools.contains(allReduceTest)) {
        askedAfterRun_ = false;  // it may add to the kernel log
      }
      add(runAllReduce(agent_, tools, gpusOfCuda(view), report_.figures));
    }
    addAll(judgeGuestSystem(view));
    if (const auto placement = plan_.placement ? judgePlacement(*plan_.placement) : std::nullopt) {
      add(*placement);
    }
    addAll(gpus);
    if (testsGpus_) {
      addAll(coverage.findings());
    }
  }

  // Asked once, and again after nccl-tests; not without a probe.
  const std::optional<GuestView>& viewAfterRun() {
    if (!askedAfterRun_ && !guest_.probe.path.empty()) {
      askedAfterRun_ = true;
      if (auto after = readErrors(agent_, guest_.probe)) {
        after_ = std::move(after);  // otherwise an earlier one still explains earlier failures
      }
    }
    return after_;
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

  // The other VFs may have used what this one lacked, such as the link of a shared switch. What an
  // error ends says less than what was measured before.
  void repeatSlow(const GuestUnderTest& guest, std::vector<std::optional<VfResult>>& results) {
    for (std::size_t each = 0; each < results.size(); ++each) {
      if (!results[each] || !isTooSlow(plan_.leases[each].entry, results[each]->report)) {
        continue;
      }
      VfResult alone = verifyVf(agent_, guest, watch_, partOf(each, allOf(plan_.leases)));
      if (alone.ended) {
        report_.together[plan_.leases[each].entry] = std::move(results[each]->report.figures);
        results[each] = std::move(alone);
      }
    }
  }

  [[nodiscard]] bool isTooSlow(const std::string& entry, const VerifyReport& report) const {
    return std::ranges::any_of(report.findings, isSlow) ||
           (plan_.isSlow && !forRepeats_.over() && plan_.isSlow(entry, report.figures));
  }

  bool collect(const std::vector<std::optional<VfResult>>& results, GpuCoverage& coverage) {
    bool ended = true;
    for (std::size_t lease = 0; lease < results.size(); ++lease) {
      const auto& each = results[lease];
      if (each) {
        if (each->port) {
          used_.push_back({plan_.leases[lease].entry, *each->port});
        }
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

  // The VFs that were found in the guest, and the leased GPUs.
  [[nodiscard]] std::vector<NcclFileDevice> devicesIn(const GuestView& view) const {
    std::vector<NcclFileDevice> devices;
    const auto addAt = [&](const std::string& pci, const std::string& entry) {
      if (const auto address = parsePciAddress(pci)) {
        const auto link = plan_.links.find(entry);
        devices.push_back({*address, link == plan_.links.end() ? PcieLink{} : link->second});
      }
    };
    for (const UsedPort& each : used_) {
      addAt(each.port.pci, each.subject);
    }
    for (const LeasedGpu& each : plan_.gpus) {
      const GuestGpu* gpu = gpuAtPlaceOf(view, each);
      addAt(gpu == nullptr ? "" : gpu->pci, each.entry);
    }
    return devices;
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
  Deadline forRepeats_;  ///< the checks that follow need time as well
  VerifyReport report_;
  std::string confinedAs_;
  std::vector<UsedPort> used_;
  ReachedGuest guest_;
  std::optional<GuestView> after_;
  bool askedAfterRun_ = false;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

}  // namespace

VerifyReport verifyGuest(agent::Agent& agent, const agent::ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  return Verification(agent, plan, watch).run(probe);
}

}  // namespace vfpass::verify
