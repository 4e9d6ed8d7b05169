#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/guest/agent.hpp"
#include "vfpass/guest/host_side.hpp"
#include "vfpass/guest/probe_program.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/nvlink_mode.hpp"

namespace vfpass::guest {

/// With which registrations data is moved. `automatic`: both where there is hardware that may
/// reorder.
enum class RelaxedOrdering { automatic, off, on, both };

/// What is tried, and how much of it.
struct VerifyPlan {
  std::vector<Lease> leases;  ///< running ones of this domain, VFs only
  bool gpuWanted = false;
  std::optional<NvlinkMode> nvlink = {};  ///< of the mapping
  std::optional<double> minimumShare;     ///< of the lowest limit (port, PCI Express), 0 to 1
  std::uint64_t messageBytes = std::uint64_t{64} << 10U;
  std::uint64_t iterations = 1000;
  std::string folder = probeFolder;  ///< for the probe, in the guest
  /// After which a probe that moves data ends by itself, before the agent's own patience is over.
  std::chrono::seconds probePatience{240};
  /// Passed on to the probe: `--inject` and the like, to show that faults are found.
  std::vector<std::string> probeArguments;
  RelaxedOrdering relaxedOrdering = RelaxedOrdering::automatic;
  bool latency = true;
  bool tools = true;  ///< perftest and nccl-tests, where the guest has them
};

/// What the host knows while the guest works.
struct VerifyWatch {
  /// What went through the lease's VF so far; nullopt where the PF's driver does not count.
  std::function<std::optional<VfTraffic>(const Lease&)> traffic;
  Agent::Progress pushed;
  /// What else it knows of the lease's device. Empty: nothing, and nothing is judged by it.
  std::function<HostSide(const Lease&)> host = {};
};

/// Layer after layer, each entry until its first broken link: agent, probe, device, RDMA, data
/// path. Never throws for what the guest does: that is a finding. `agent` bounds the time of all of
/// it.
VerifyReport verifyGuest(Agent& agent, const ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch);

}  // namespace vfpass::guest
