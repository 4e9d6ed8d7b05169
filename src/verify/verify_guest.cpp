#include "vfpass/verify/verify_guest.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "choose_gpus.hpp"
#include "data_path.hpp"
#include "first_layers.hpp"
#include "guest_tools.hpp"
#include "judge_bandwidth.hpp"
#include "judge_confinement.hpp"
#include "judge_gpu_place.hpp"
#include "transfer_options.hpp"
#include "vfpass/verify/nccl_topology_check.hpp"

namespace vfpass::verify {
namespace {

class Verification {
 public:
  Verification(agent::Agent& agent, const VerifyPlan& plan, const VerifyWatch& watch)
      : agent_(agent),
        plan_(plan),
        watch_(watch),
        testsGpus_(testsGpus(plan.gpuTest, plan.gpus)),
        assigned_(assignGpus(plan.leases, plan.gpus)),
        coverage_(plan.gpus) {}

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
    probe_ = guest.probe;
    confinedAs_ = view.confinedAs;
    const auto gpus = testsGpus_ ? judgeGpus(view, true, plan_.nvlink)
                                 : std::vector{gpusNotTested(plan_.gpuTest, view)};
    const bool gpuUsable = testsGpus_ && gpus.back().outcome == Outcome::passed;
    layer_.enter("perftest", "the guest can be searched for its own tools");
    tools_ = plan_.tools ? findTools(agent_) : std::set<std::string>{};
    for (const auto& lease : plan_.leases) {
      part_ = lease.entry + ", " + std::to_string(++verified_) + " of " +
              std::to_string(plan_.leases.size());
      verifyLease(lease, view, gpuUsable);
    }
    if (testsGpus_ && isMirrored()) {
      layer_.enter("nccl-topology", "the guest can be searched for NCCL's topology file");
      add(checkNcclTopology(agent_));
    }
    if (plan_.tools && gpuUsable) {
      watch_.show("nccl-tests");
      layer_.enter("nccl-tests", "nccl-tests run in the guest");
      add(runAllReduce(agent_, tools_, view.gpus.size(), report_.figures));
    }
    addAll(gpus);
    if (testsGpus_) {
      addAll(coverage_.findings());
    }
  }

  [[nodiscard]] bool isMirrored() const {
    return std::ranges::any_of(plan_.leases,
                               [](const Lease& lease) { return lease.guest.isMirrored(); });
  }

  void verifyLease(const Lease& lease, const GuestView& view, bool gpuUsable) {
    layer_.enter("device-host", "the host sees the VF");
    const HostSide host = watch_.host ? watch_.host(lease) : HostSide{};
    const DeviceVerdict device = judgeEntry(lease, view, watch_.host ? &host : nullptr);
    addAll(device.findings);
    DataPath path(agent_, probe_, plan_, watch_, report_);
    watch_.show(part_ + ": host memory");
    layer_.enter("data-host", "the probe moves data");
    if (!device.port || !path.tryMemory(lease, *device.port, std::nullopt)) {
      skipGpus(lease, lease.entry + " failed before");
      return;
    }
    if (sizesWanted(plan_)) {
      path.trySizes(lease, *device.port, std::nullopt);
    }
    if (gpuUsable) {
      verifyGpus(lease, *device.port, view, host, path);
    } else {
      skipGpus(lease, "the guest cannot use GPU memory for RDMA");
    }
    runTools(lease, *device.port, std::nullopt);
    compare(lease, *device.port, host, "host", 0);
    addOptional(judgeOrdering(lease.entry, report_.figures));
  }

  void verifyGpus(const Lease& lease, const RdmaPort& port, const GuestView& view,
                  const HostSide& host, DataPath& path) {
    if (plan_.gpus.empty()) {
      const auto nearest = nearestGpu(view, port.pci);
      if (nearest) {
        verifyGpu(lease, port, view, host, path, *nearest);
      } else {
        add(noGpuForCuda(lease.entry));
      }
      return;
    }
    for (const std::size_t each : assigned_[lease.entry]) {
      const LeasedGpu& leased = plan_.gpus[each];
      const FoundGpu found = findLeasedGpu(view, leased, lease.entry, port.pci);
      if (!found.gpu) {
        coverage_.explained(leased.entry, found.problem);
      } else if (verifyGpu(lease, port, view, host, path, *found.gpu)) {
        coverage_.passed(leased.entry, lease.entry);
      } else {
        coverage_.failed(leased.entry, lease.entry);
      }
    }
  }

  bool verifyGpu(const Lease& lease, const RdmaPort& port, const GuestView& view, HostSide host,
                 DataPath& path, const TestedGpu& gpu) {
    host.gpu = gpu.path;
    addAll(judgeGpuPlace(lease.entry, view, port.pci, gpu));
    watch_.show(part_ + ": GPU memory");
    layer_.enter("data-gpu", "the probe moves data");
    const std::size_t first = report_.figures.size();
    if (!path.tryMemory(lease, port, gpu)) {
      addAll(mixedNotTried("data-", lease.entry));
      return false;
    }
    path.tryMixedMemory(lease, port, gpu);
    if (sizesWanted(plan_)) {
      path.trySizes(lease, port, gpu);
    }
    addOptional(judgeBesideHost(lease.entry, figuresFrom(first), gpu.path, gpu.distance));
    runTools(lease, port, gpu);
    compare(lease, port, host, "gpu", first);
    return true;
  }

  void skipGpus(const Lease& lease, const std::string& reason) {
    for (const std::size_t each : assigned_[lease.entry]) {
      coverage_.skipped(plan_.gpus[each].entry, reason);
    }
  }

  void runTools(const Lease& lease, const RdmaPort& port, const std::optional<TestedGpu>& gpu) {
    if (plan_.tools) {
      layer_.enter("perftest", "the guest's own perftest runs");
      add(runPerftest(agent_, tools_, port,
                      {lease.entry, plan_.messageBytes, plan_.iterations, gpu}, report_.figures));
    }
  }

  // Both ends are on one port, hence the loopback limit. A VF's figures of one GPU begin at
  // `first`: those of its other GPUs do not count.
  void compare(const Lease& lease, const RdmaPort& port, const HostSide& host, const char* memory,
               std::size_t first) {
    const auto limit = limitFor(lease, port, host, memory, Ends::loopback);
    for (std::size_t i = first; i < report_.figures.size(); ++i) {
      Figure& figure = report_.figures[i];
      if (limit && figure.subject == lease.entry && figure.memory == memory &&
          figure.gigabitsPerSecond > 0) {
        figure.limit = limit->gigabits;
      }
    }
    if (plan_.minimumShare) {
      add(judgeBandwidth(lease.entry, memory, port, limit, *plan_.minimumShare,
                         figuresFrom(first)));
    }
  }

  void add(const Finding& finding) {
    report_.findings.push_back(withConfinement(finding, confinedAs_));
  }
  [[nodiscard]] std::vector<Figure> figuresFrom(std::size_t first) const {
    return {report_.figures.begin() + static_cast<std::ptrdiff_t>(first), report_.figures.end()};
  }

  void addAll(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      add(finding);
    }
  }
  void addOptional(const std::optional<Finding>& finding) {
    if (finding) {
      report_.findings.push_back(*finding);
    }
  }

  agent::Agent& agent_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  bool testsGpus_;
  std::map<std::string, std::vector<std::size_t>> assigned_;
  GpuCoverage coverage_;
  VerifyReport report_;
  agent::PlacedProbe probe_;
  std::string confinedAs_;
  std::set<std::string> tools_;
  std::string part_;  ///< for the progress: the entry and its number
  std::size_t verified_ = 0;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

}  // namespace

VerifyReport verifyGuest(agent::Agent& agent, const agent::ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  return Verification(agent, plan, watch).run(probe);
}

}  // namespace vfpass::verify
