#include "choose_gpus.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "judge_device.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// CUDA writes the PCI domain with eight digits, sysfs with four.
bool sameFunction(const std::string& one, const std::string& other) {
  const auto address = parsePciAddress(one);
  return address && address == parsePciAddress(other);
}

// A software device is on a network device.
std::string functionOf(const GuestRdmaDevice& device, const GuestView& view) {
  const auto parent = std::ranges::find(view.netdevs, device.parent, &GuestNetdev::name);
  return device.pci.empty() && parent != view.netdevs.end() ? parent->pci : device.pci;
}

constexpr std::array<std::string_view, 5> nearestFirst{"PIX", "PXB", "PHB", "NODE", "SYS"};

std::size_t rankOnHost(const LeasedGpu& gpu, const Lease& vf) {
  const auto path = gpu.paths.find(vf.entry);
  return path == gpu.paths.end() ? nearestFirst.size() : distanceRank(path->second.distance);
}

std::string distanceOf(const GuestView& view, const std::string& nic, const std::string& gpu) {
  const auto found = std::ranges::find_if(view.distances, [&](const GuestDistance& each) {
    return sameFunction(each.nic, nic) && sameFunction(each.gpu, gpu);
  });
  return found == view.distances.end() ? "" : found->distance;
}

constexpr const char* expectedTest = "RDMA write and read in its memory, every byte checked";
constexpr const char* askNvidiaSmi = "in the guest: run nvidia-smi, and look at its kernel log";

FoundGpu missing(const LeasedGpu& gpu, Outcome outcome, const std::string& seen,
                 const std::string& remedy) {
  return {{}, {"gpu-tested", gpu.entry, outcome, expectedTest, seen, remedy}};
}

}  // namespace

std::size_t distanceRank(const std::string& distance) {
  return static_cast<std::size_t>(std::ranges::find(nearestFirst, distance) - nearestFirst.begin());
}

std::string nameOf(const TestedGpu& gpu) {
  return gpu.entry.empty() ? toString(gpu.address) : gpu.entry;
}

std::map<std::string, std::vector<std::size_t>> assignGpus(const std::vector<Lease>& vfs,
                                                           const std::vector<LeasedGpu>& gpus) {
  std::map<std::string, std::vector<std::size_t>> assigned;
  std::vector<std::size_t> users(gpus.size());
  const auto give = [&](const Lease& vf, std::size_t gpu) {
    assigned[vf.entry].push_back(gpu);
    ++users[gpu];
  };
  for (const Lease& vf : vfs) {
    std::optional<std::size_t> best;
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const auto order = [&](std::size_t which) {
        return std::tuple(rankOnHost(gpus[which], vf), users[which]);
      };
      if (!best || order(gpu) < order(*best)) {
        best = gpu;
      }
    }
    if (best) {
      give(vf, *best);
    }
  }
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const auto nearest = std::ranges::min_element(vfs, {}, [&](const Lease& vf) {
      return std::tuple(rankOnHost(gpus[gpu], vf), assigned[vf.entry].size());
    });
    if (users[gpu] == 0 && nearest != vfs.end()) {
      give(*nearest, gpu);
    }
  }
  return assigned;
}

FoundGpu findLeasedGpu(const GuestView& view, const LeasedGpu& gpu, const std::string& vf,
                       const std::string& nic) {
  if (gpu.guestPath.empty()) {
    return missing(gpu, Outcome::notObservable, "not tested: its place in the guest is unknown",
                   "compare `virsh dumpxml` with `vfpass topo --vm`");
  }
  const auto address = functionAtPath(view, gpu.guestPath);
  if (!address) {
    return missing(gpu, Outcome::failed, "the guest has no device at its place", askNvidiaSmi);
  }
  const auto found = std::ranges::find_if(view.gpus, [&](const GuestGpu& each) {
    return each.index && parsePciAddress(each.pci) == address;
  });
  if (found == view.gpus.end()) {
    return missing(gpu, Outcome::failed, "CUDA does not have GPU " + toString(*address),
                   askNvidiaSmi);
  }
  const auto path = gpu.paths.find(vf);
  return {TestedGpu{*found->index, *address, gpu.entry, distanceOf(view, nic, found->pci),
                    found->dmaBuf,
                    path == gpu.paths.end() ? std::nullopt : std::optional(path->second)},
          {}};
}

const GuestGpu* gpuAtPlaceOf(const GuestView& view, const LeasedGpu& gpu) {
  const auto address = functionAtPath(view, gpu.guestPath);
  const auto found = std::ranges::find_if(view.gpus, [&](const GuestGpu& each) {
    return address && parsePciAddress(each.pci) == address;
  });
  return found == view.gpus.end() ? nullptr : &*found;
}

GuestView viewOfLeased(GuestView view, const std::vector<Lease>& vfs,
                       const std::vector<LeasedGpu>& gpus) {
  std::vector<GuestGpu> ownGpus;
  for (const LeasedGpu& each : gpus) {
    if (const GuestGpu* own = gpuAtPlaceOf(view, each); own != nullptr) {
      ownGpus.push_back(*own);
    }
  }
  bool anyVf = false;
  std::vector<GuestRdmaDevice> ownDevices;
  for (const Lease& each : vfs) {
    // Also of a VF that is down.
    const std::string vf = judgeDevice(each, view).function;
    anyVf = anyVf || !vf.empty();
    std::ranges::copy_if(
        view.rdmaDevices, std::back_inserter(ownDevices),
        [&](const GuestRdmaDevice& device) { return sameFunction(functionOf(device, view), vf); });
  }
  if (!gpus.empty()) {
    view.gpus = std::move(ownGpus);
  }
  if (anyVf) {
    view.rdmaDevices = std::move(ownDevices);
  }
  return view;
}

std::optional<TestedGpu> nearestGpu(const GuestView& view, const std::string& nic) {
  std::optional<TestedGpu> best;
  for (const auto& gpu : view.gpus) {
    const auto address = parsePciAddress(gpu.pci);
    if (!gpu.index || !address) {
      continue;
    }
    const TestedGpu found{*gpu.index, *address, "", distanceOf(view, nic, gpu.pci), gpu.dmaBuf};
    if (!best || distanceRank(found.distance) < distanceRank(best->distance)) {
      best = found;
    }
  }
  return best;
}

Finding noGpuForCuda(const std::string& subject) {
  return {"gpu-driver",    subject,
          Outcome::failed, "a GPU that CUDA can use",
          "none",          "in the guest: run nvidia-smi"};
}

void GpuCoverage::passed(const std::string& gpu, const std::string& vf) {
  results_[gpu].passedWith.push_back(vf);
}

void GpuCoverage::failed(const std::string& gpu, const std::string& vf) {
  results_[gpu].failedWith.push_back(vf);
}

void GpuCoverage::tested(const TestedGpu& gpu, const std::string& vf, bool passed) {
  if (!gpu.entry.empty()) {
    passed ? this->passed(gpu.entry, vf) : failed(gpu.entry, vf);
  }
}

void GpuCoverage::explained(const std::string& gpu, const Finding& problem) {
  results_[gpu].problem = problem;
}

void GpuCoverage::skipped(const std::string& gpu, const std::string& reason) {
  results_[gpu].reasons.push_back(reason);
}

void GpuCoverage::add(const GpuCoverage& other) {
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& [gpu, result] : other.results_) {
    Result& mine = results_[gpu];
    append(mine.passedWith, result.passedWith);
    append(mine.failedWith, result.failedWith);
    append(mine.reasons, result.reasons);
    mine.problem = mine.problem ? mine.problem : result.problem;
  }
}

std::vector<Finding> GpuCoverage::findings() const {
  std::vector<Finding> findings;
  for (const LeasedGpu& gpu : gpus_) {
    const auto result = results_.find(gpu.entry);
    findings.push_back(findingOf(gpu.entry, result == results_.end() ? Result{} : result->second));
  }
  return findings;
}

Finding GpuCoverage::findingOf(const std::string& gpu, const Result& result) {
  if (!result.failedWith.empty()) {
    return {"gpu-tested",
            gpu,
            Outcome::failed,
            expectedTest,
            "failed with " + join(result.failedWith, ", "),
            "see data-gpu of " + join(result.failedWith, ", ")};
  }
  if (!result.passedWith.empty()) {
    return {"gpu-tested",
            gpu,
            Outcome::passed,
            expectedTest,
            "tested with " + join(result.passedWith, ", "),
            ""};
  }
  if (result.problem) {
    return *result.problem;
  }
  const std::string reason =
      result.reasons.empty() ? "no VF could be used" : join(result.reasons, "; ");
  return {"gpu-tested",
          gpu,
          Outcome::notObservable,
          expectedTest,
          "not tested: " + reason,
          "resolve the other problems, then run vfpass verify again; or exclude GPU memory with "
          "verify: {paths: [host]} in the mapping"};
}

std::vector<TestedGpu> gpusOf(const std::string& vf, const std::string& nic, const GuestView& view,
                              const std::vector<std::size_t>& assigned, GpuCoverage& coverage) {
  std::vector<TestedGpu> gpus;
  if (coverage.leased().empty()) {
    if (const auto nearest = nearestGpu(view, nic)) {
      gpus.push_back(*nearest);
    }
  }
  for (const std::size_t each : assigned) {
    const LeasedGpu& leased = coverage.leased()[each];
    const FoundGpu found = findLeasedGpu(view, leased, vf, nic);
    if (found.gpu) {
      gpus.push_back(*found.gpu);
    } else {
      coverage.explained(leased.entry, found.problem);
    }
  }
  return gpus;
}

void skipUnusableGpus(const GuestView& view, const std::vector<std::size_t>& assigned,
                      GpuCoverage& coverage) {
  for (const std::size_t each : assigned) {
    const LeasedGpu& leased = coverage.leased()[each];
    if (gpuAtPlaceOf(view, leased) == nullptr) {
      coverage.explained(leased.entry, findLeasedGpu(view, leased, "", "").problem);
    } else {
      coverage.skipped(leased.entry, "the guest cannot use GPU memory for RDMA");
    }
  }
}

bool testsGpus(GpuTest test, const std::vector<LeasedGpu>& gpus) {
  return test == GpuTest::wanted || (test == GpuTest::automatic && !gpus.empty());
}

Finding gpusNotTested(GpuTest test, const GuestView& view) {
  Finding finding{"gpu-path", "", Outcome::waived, "", "the guest has no GPU", ""};
  if (test == GpuTest::excluded) {
    finding.seen = "not tested: excluded by verify: {paths: [host]} in the mapping";
    finding.observer = Observer::host;
  } else if (!view.gpus.empty()) {
    finding.seen = "not tested: vfpass leased no GPU to the VM; --gpu tests the guest's GPU";
  } else {
    finding.key = "gpu";
  }
  return finding;
}

}  // namespace vfpass::verify
