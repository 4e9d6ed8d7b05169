#include "vfpass/guest/verify.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "data_path.hpp"
#include "guest_tools.hpp"
#include "judge_bandwidth.hpp"
#include "judge_device.hpp"
#include "judge_gpu_place.hpp"
#include "judge_host.hpp"
#include "judge_network.hpp"

namespace vfpass::guest {
namespace {

class Verification {
 public:
  Verification(Agent& agent, const VerifyPlan& plan, const VerifyWatch& watch)
      : agent_(agent), plan_(plan), watch_(watch) {}

  VerifyReport run(const ProbeFile& probe) {
    try {
      reach(probe);
    } catch (const Error& error) {
      report_.findings.push_back(
          {layer_, "", Outcome::notObservable, expectation_, error.what(), error.remedy()});
    }
    return report_;
  }

 private:
  void enter(const char* layer, const char* expectation) {
    layer_ = layer;
    expectation_ = expectation;
  }
  void passed(const std::string& seen) {
    report_.findings.push_back({layer_, "", Outcome::passed, expectation_, seen, ""});
  }

  void reach(const ProbeFile& probe) {
    enter("agent", "the guest's agent runs programs");
    agent_.run("/bin/true", {});
    passed("it does");
    enter("probe", "vfpass-probe starts in the guest");
    probe_ = placeProbe(agent_, probe, plan_.folder, watch_.pushed);
    passed(probe_.path + (probe_.pushed ? ", just copied" : ", already there"));
    enter("inventory", "the probe says what the guest has");
    const GuestView view = readGuestView(runProbe(agent_, probe_, {"inventory"}));
    passed("it does");
    const auto gpus = judgeGpus(view, plan_.gpuWanted);
    const bool gpuUsable = gpus.back().outcome == Outcome::passed;
    enter("perftest", "the guest's own tools are looked for");
    tools_ = plan_.tools ? findTools(agent_) : std::set<std::string>{};
    for (const auto& lease : plan_.leases) {
      verifyLease(lease, view, gpuUsable);
    }
    if (plan_.tools && plan_.gpuWanted && gpuUsable) {
      enter("nccl-tests", "nccl-tests run");
      add(runAllReduce(agent_, tools_, view.gpus.size(), report_.figures));
    }
    addAll(gpus);
  }

  void verifyLease(const Lease& lease, const GuestView& view, bool gpuUsable) {
    enter("device-host", "the host sees the device");
    const HostSide host = watch_.host ? watch_.host(lease) : HostSide{};
    if (watch_.host && add(judgeHold(lease, host.hold)) == Outcome::failed) {
      return;
    }
    const DeviceVerdict device = judgeDevice(lease, view, host);
    addAll(device.findings);
    if (!device.port) {
      return;
    }
    addAll(judgeNetworkSettings(lease.vfName, *device.port, view, host.guestMtu));
    DataPath path(agent_, probe_, plan_, watch_, report_);
    enter("data-host", "the probe moves data");
    if (!path.tryMemory(lease, *device.port, std::nullopt)) {
      return;
    }
    if (plan_.gpuWanted && gpuUsable) {
      verifyGpu(lease, *device.port, view, host, path);
    }
    runTools(lease, *device.port, std::nullopt);
    compare(lease, *device.port, host, "host");
    addOptional(judgeOrdering(lease.vfName, report_.figures));
  }

  void verifyGpu(const Lease& lease, const RdmaPort& port, const GuestView& view,
                 const HostSide& host, DataPath& path) {
    const auto gpu = nearestGpu(view, port.pci);
    if (!gpu) {
      add({"gpu-driver", lease.vfName, Outcome::failed, "a GPU that CUDA can use", "none",
           "in the guest: nvidia-smi"});
      return;
    }
    addAll(judgeGpuPlace(lease.vfName, view, port.pci, *gpu));
    enter("data-gpu", "the probe moves data");
    if (path.tryMemory(lease, port, gpu)) {
      addOptional(judgeBesideHost(lease.vfName, report_.figures, host.gpu, gpu->distance));
      runTools(lease, port, gpu);
      compare(lease, port, host, "gpu");
    }
  }

  void runTools(const Lease& lease, const RdmaPort& port, const std::optional<NearestGpu>& gpu) {
    if (plan_.tools) {
      enter("perftest", "the guest's own perftest runs");
      add(runPerftest(agent_, tools_, port,
                      {lease.vfName, plan_.messageBytes, plan_.iterations, gpu}, report_.figures));
    }
  }

  // Both ends are on one port here.
  void compare(const Lease& lease, const RdmaPort& port, const HostSide& host, const char* memory) {
    const auto limit = limitFor(lease, port, host, memory, Ends::loopback);
    for (auto& figure : report_.figures) {
      if (limit && figure.subject == lease.vfName && figure.memory == memory &&
          figure.gigabitsPerSecond > 0) {
        figure.limit = limit->gigabits;
      }
    }
    if (plan_.minimumShare) {
      add(judgeBandwidth(lease.vfName, memory, port, limit, *plan_.minimumShare, report_.figures));
    }
  }

  Outcome add(const Finding& finding) {
    report_.findings.push_back(finding);
    return finding.outcome;
  }
  void addAll(const std::vector<Finding>& findings) {
    report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
  }
  void addOptional(const std::optional<Finding>& finding) {
    if (finding) {
      report_.findings.push_back(*finding);
    }
  }

  Agent& agent_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport report_;
  PlacedProbe probe_;
  std::set<std::string> tools_;
  std::string layer_;
  std::string expectation_;
};

}  // namespace

VerifyReport verifyGuest(Agent& agent, const ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch) {
  return Verification(agent, plan, watch).run(probe);
}

}  // namespace vfpass::guest
