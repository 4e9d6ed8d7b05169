#include "verify_vf.hpp"

#include <algorithm>
#include <utility>

#include "data_path.hpp"
#include "first_layers.hpp"
#include "guest_tools.hpp"
#include "judge_bandwidth.hpp"
#include "judge_confinement.hpp"
#include "judge_gpu_place.hpp"
#include "transfer_options.hpp"

namespace vfpass::verify {
namespace {

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
    const DeviceVerdict device = judgeEntry(lease_, guest_.view, watch_.host ? &host : nullptr);
    addAll(device.findings);
    DataPath path(agent_, guest_.probe, guest_.plan, watch_, part_.idle, result_.report);
    watch_.show(part_.position + ": host memory");
    layer_.enter("data-host", "the probe moves data");
    if (!device.port || !path.tryMemory(lease_, *device.port, std::nullopt)) {
      skipGpus(lease_.entry + " failed before");
      return;
    }
    if (sizesWanted(guest_.plan)) {
      path.trySizes(lease_, *device.port, std::nullopt);
    }
    if (guest_.gpuUsable) {
      verifyGpus(*device.port, host, path);
    } else {
      skipGpus("the guest cannot use GPU memory for RDMA");
    }
    runTools(*device.port, std::nullopt);
    compare(*device.port, host, "host", 0);
    addOptional(judgeOrdering(lease_.entry, result_.report.figures));
  }

  void verifyGpus(const RdmaPort& port, const HostSide& host, DataPath& path) {
    if (guest_.plan.gpus.empty()) {
      const auto nearest = nearestGpu(guest_.view, port.pci);
      if (nearest) {
        verifyGpu(port, host, path, *nearest);
      } else {
        add(noGpuForCuda(lease_.entry));
      }
      return;
    }
    for (const std::size_t each : ownGpus()) {
      const LeasedGpu& leased = guest_.plan.gpus[each];
      const FoundGpu found = findLeasedGpu(guest_.view, leased, lease_.entry, port.pci);
      if (!found.gpu) {
        result_.gpus.explained(leased.entry, found.problem);
      } else if (verifyGpu(port, host, path, *found.gpu)) {
        result_.gpus.passed(leased.entry, lease_.entry);
      } else {
        result_.gpus.failed(leased.entry, lease_.entry);
      }
    }
  }

  bool verifyGpu(const RdmaPort& port, HostSide host, DataPath& path, const TestedGpu& gpu) {
    host.gpu = gpu.path;
    addAll(judgeGpuPlace(lease_.entry, guest_.view, port.pci, gpu));
    watch_.show(part_.position + ": GPU memory");
    layer_.enter("data-gpu", "the probe moves data");
    const std::size_t first = result_.report.figures.size();
    if (!path.tryMemory(lease_, port, gpu)) {
      addAll(mixedNotTried("data-", lease_.entry));
      return false;
    }
    path.tryMixedMemory(lease_, port, gpu);
    if (sizesWanted(guest_.plan)) {
      path.trySizes(lease_, port, gpu);
    }
    addOptional(judgeBesideHost(lease_.entry, figuresFrom(first), gpu.path, gpu.distance));
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

  // Both ends are on one port, hence the loopback limit. A VF's figures of one GPU begin at
  // `first`: those of its other GPUs do not count.
  void compare(const RdmaPort& port, const HostSide& host, const char* memory, std::size_t first) {
    const auto limit = limitFor(lease_, port, host, memory, Ends::loopback);
    for (std::size_t i = first; i < result_.report.figures.size(); ++i) {
      Figure& figure = result_.report.figures[i];
      if (limit && figure.subject == lease_.entry && figure.memory == memory &&
          figure.gigabitsPerSecond > 0) {
        figure.limit = limit->gigabits;
      }
    }
    if (guest_.plan.minimumShare) {
      add(judgeBandwidth(lease_.entry, memory, port, limit, *guest_.plan.minimumShare,
                         figuresFrom(first)));
    }
  }

  [[nodiscard]] std::vector<std::size_t> ownGpus() const {
    const auto found = guest_.gpus.find(lease_.entry);
    return found == guest_.gpus.end() ? std::vector<std::size_t>{} : found->second;
  }

  [[nodiscard]] std::vector<Figure> figuresFrom(std::size_t first) const {
    const auto& figures = result_.report.figures;
    return {figures.begin() + static_cast<std::ptrdiff_t>(first), figures.end()};
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
      result_.report.findings.push_back(*finding);
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

}  // namespace

VfResult verifyVf(const agent::Agent& agent, const GuestUnderTest& guest, const VerifyWatch& watch,
                  const VfPart& part) {
  return VfVerification(agent, guest, watch, part).run();
}

}  // namespace vfpass::verify
