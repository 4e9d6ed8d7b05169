#include "vfpass/verify/verify_guest.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "data_path.hpp"
#include "first_layers.hpp"
#include "guest_tools.hpp"
#include "judge_bandwidth.hpp"
#include "judge_gpu_place.hpp"
#include "vfpass/verify/nccl_topology_check.hpp"

namespace vfpass::verify {
namespace {

class Verification {
 public:
  Verification(agent::Agent& agent, const VerifyPlan& plan, const VerifyWatch& watch)
      : agent_(agent), plan_(plan), watch_(watch) {}

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
    const ReachedGuest guest = reachGuest(agent_, probe, plan_.folder, watch_.pushed, layer_);
    const GuestView& view = guest.view;
    probe_ = guest.probe;
    const auto gpus = judgeGpus(view, plan_.gpuWanted, plan_.nvlink);
    const bool gpuUsable = gpus.back().outcome == Outcome::passed;
    layer_.enter("perftest", "the guest can be searched for its own tools");
    tools_ = plan_.tools ? findTools(agent_) : std::set<std::string>{};
    for (const auto& lease : plan_.leases) {
      verifyLease(lease, view, gpuUsable);
    }
    if (plan_.gpuWanted && isMirrored()) {
      layer_.enter("nccl-topology", "the guest can be searched for NCCL's topology file");
      add(checkNcclTopology(agent_));
    }
    if (plan_.tools && plan_.gpuWanted && gpuUsable) {
      layer_.enter("nccl-tests", "nccl-tests run in the guest");
      add(runAllReduce(agent_, tools_, view.gpus.size(), report_.figures));
    }
    addAll(gpus);
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
    if (!device.port) {
      return;
    }
    DataPath path(agent_, probe_, plan_, watch_, report_);
    layer_.enter("data-host", "the probe moves data");
    if (!path.tryMemory(lease, *device.port, std::nullopt)) {
      return;
    }
    if (plan_.gpuWanted && gpuUsable) {
      verifyGpu(lease, *device.port, view, host, path);
    }
    runTools(lease, *device.port, std::nullopt);
    compare(lease, *device.port, host, "host");
    addOptional(judgeOrdering(lease.entry, report_.figures));
  }

  void verifyGpu(const Lease& lease, const RdmaPort& port, const GuestView& view,
                 const HostSide& host, DataPath& path) {
    const auto gpu = nearestGpu(view, port.pci);
    if (!gpu) {
      add(noGpuForCuda(lease.entry));
      return;
    }
    addAll(judgeGpuPlace(lease.entry, view, port.pci, *gpu, host.gpu));
    layer_.enter("data-gpu", "the probe moves data");
    if (path.tryMemory(lease, port, gpu)) {
      addOptional(judgeBesideHost(lease.entry, report_.figures, host.gpu, gpu->distance));
      runTools(lease, port, gpu);
      compare(lease, port, host, "gpu");
    }
  }

  void runTools(const Lease& lease, const RdmaPort& port, const std::optional<NearestGpu>& gpu) {
    if (plan_.tools) {
      layer_.enter("perftest", "the guest's own perftest runs");
      add(runPerftest(agent_, tools_, port,
                      {lease.entry, plan_.messageBytes, plan_.iterations, gpu}, report_.figures));
    }
  }

  // Both ends are on one port, hence the loopback limit.
  void compare(const Lease& lease, const RdmaPort& port, const HostSide& host, const char* memory) {
    const auto limit = limitFor(lease, port, host, memory, Ends::loopback);
    for (auto& figure : report_.figures) {
      if (limit && figure.subject == lease.entry && figure.memory == memory &&
          figure.gigabitsPerSecond > 0) {
        figure.limit = limit->gigabits;
      }
    }
    if (plan_.minimumShare) {
      add(judgeBandwidth(lease.entry, memory, port, limit, *plan_.minimumShare, report_.figures));
    }
  }

  void add(const Finding& finding) { report_.findings.push_back(finding); }
  void addAll(const std::vector<Finding>& findings) {
    report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
  }
  void addOptional(const std::optional<Finding>& finding) {
    if (finding) {
      report_.findings.push_back(*finding);
    }
  }

  agent::Agent& agent_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport report_;
  agent::PlacedProbe probe_;
  std::set<std::string> tools_;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

}  // namespace

VerifyReport verifyGuest(agent::Agent& agent, const agent::ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  return Verification(agent, plan, watch).run(probe);
}

}  // namespace vfpass::verify
