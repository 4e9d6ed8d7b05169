#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/baseline.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/verify/host_baseline.hpp"

namespace vfpass::commands {

/// What bandwidth of this PF depends on and can be read, by the names of baseline.schema.json:
/// kernel, pcie-link, max-payload, max-read-request, iommu-domain, cpufreq-governor,
/// cpuidle-governor, deepest-c-state (the last three of the first CPU of the PF's node),
/// transparent-hugepages. `pf`: index in the topology.
std::map<std::string, std::string> bandwidthSettings(const host::Root& root, const Topology& host,
                                                     std::size_t pf);

/// How the running domain runs, where that can make it slower than the host itself: vCPUs that are
/// not pinned, memory without huge pages. `liveXml`: the running domain's.
std::vector<BaselineFactor> slowedByDomain(std::string_view liveXml);

/// What `vfpass verify --baseline` was asked to measure.
struct BaselineRequest {
  std::vector<std::string> devices;  ///< PF, and maybe a GPU: PCI address, netdev or RDMA device
  std::string probe;                 ///< the probe program on this host
  std::uint64_t messageBytes = 0;
  std::uint64_t iterations = 0;
  std::chrono::seconds timeout = deadlines::verify;  ///< of the whole command
};

/// Throws (refused) unless NVIDIA's modules are loaded: CUDA would load them, which binds them to
/// GPUs without a driver. Only reads.
void requireGpuModules(const host::Root& root, const PciAddress& gpu);

/// Measures a PF on this host with vfpass-probe, and keeps the result. Changes no setting. Refuses
/// a GPU that a guest has. Holds the PF's lock for the whole measurement, as attach does.
ExitCode measurePf(Session& session, const BaselineRequest& request);

/// The VFs of a running domain beside the kept baselines of their PFs. `session` must outlive the
/// result.
std::vector<verify::BaselineSubject> baselineSubjects(Session& session,
                                                      const DomainDescription& domain,
                                                      const std::vector<Lease>& vfs);

/// This PF and the other functions of its card (ports), without their VFs: all of them share one
/// PCI Express link. Pure.
std::vector<PciAddress> functionsOfCard(const Topology& host, const PciAddress& pf);

/// Adds who uses the card now to Baseline::users, each once and at most 16, and to
/// Baseline::unseenUsers why there may be others. That `find` throws Error is such a reason.
void addUsers(const std::function<std::vector<Holder>()>& find, Baseline& baseline);

}  // namespace vfpass::commands
