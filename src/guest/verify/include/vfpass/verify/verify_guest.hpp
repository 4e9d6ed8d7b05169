#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/agent/agent.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// Whether data is also moved through GPU memory.
enum class GpuTest {
  automatic,  ///< if vfpass leased the VM a GPU
  wanted,     ///< `--gpu`, or `verify: {paths: [gpu]}`
  excluded    ///< `verify: {paths: [host]}`
};

/// Whether memory is registered with relaxed ordering. `automatic`: both ways on hardware, `off` on
/// software devices, which never reorder.
enum class RelaxedOrdering { automatic, off, on, both };

/// What to test, and how much of it.
struct VerifyPlan {
  std::vector<Lease> leases;    ///< running leases of this domain, VFs only
  std::vector<LeasedGpu> gpus;  ///< leased GPUs of the running domain
  /// On the host the link right above each leased device, above a VF's PF, by entry: the speed and
  /// width that both ends are capable of.
  std::map<std::string, PcieLink> links = {};
  std::optional<HostPlacement> placement = {};  ///< of the running domain; nullopt: unknown
  GpuTest gpuTest = GpuTest::automatic;
  std::optional<NvlinkMode> nvlink = {};  ///< from the mapping
  /// Version of the host's fabric manager that activates the guest's partition; empty: none, or not
  /// known.
  std::string fabricManager = {};
  std::optional<double> minimumShare;  ///< share of the lowest limit (port, PCI Express), 0 to 1
  std::uint64_t messageBytes = std::uint64_t{64} << 10U;
  std::uint64_t iterations = 1000;
  std::string folder = agent::probeFolder;  ///< the probe's directory in the guest
  /// After this time a probe that moves data exits by itself, before the agent's timeout.
  std::chrono::seconds probeTimeout = deadlines::probeWithin(deadlines::verify);
  /// Additional probe options such as `--inject`, to show that faults are found.
  std::vector<std::string> probeArguments;
  RelaxedOrdering relaxedOrdering = RelaxedOrdering::automatic;
  bool latency = true;
  bool allPairs = false;             ///< of verifyPair(): then all pairs at the same time
  std::chrono::seconds sustain{10};  ///< time for which they do
  bool sizes = false;                ///< also every power of two from 2 bytes to 16 MiB
  std::optional<std::uint64_t> sizeIterations =
      {};  ///< messages of each size; nullopt: the preset's
  /// VFs that share neither a PF nor a GPU are verified at the same time, as far as the guest has
  /// processors for it.
  bool concurrent = true;
  unsigned vcpus = 0;  ///< of the domain; 0: unknown
  /// Whether a VF is slower than expected by these figures. If others moved data meanwhile, it is
  /// then measured again alone, as long as two fifths of the time have not passed. May be empty.
  std::function<bool(const std::string& entry, const std::vector<Figure>&)> isSlow = {};
  bool tools = true;  ///< also run perftest and nccl-tests, if the guest has them
};

/// Reads the traffic counters of a lease's VF; nullopt when the PF's driver has none.
using ReadTraffic = std::function<std::optional<VfTraffic>(const Lease&)>;

/// The host's own observations during a verification.
struct VerifyWatch {
  ReadTraffic traffic;
  agent::Agent::Progress pushed;  ///< upload of the probe
  /// The host's view of the lease's device. Empty: checks that need it are skipped.
  std::function<HostSide(const Lease&)> host = {};
  /// Called when the next part begins, such as `rail0, 1 of 8: GPU memory`. May be empty.
  std::function<void(const std::string& part)> progress = {};

  void show(const std::string& part) const {
    if (progress) {
      progress(part);
    }
  }
};

/// Checks agent, probe, device, RDMA and data path in this order; for each entry, stops at the
/// first failed check. A leased GPU that was not tested is a finding that is not observable. A
/// guest's failure is a finding, not an exception. The timeout of `agent` bounds the whole run.
VerifyReport verifyGuest(agent::Agent& agent, const agent::ProbeFile& probe, const VerifyPlan& plan,
                         const VerifyWatch& watch);

/// Whether data arrived with other bytes, as opposed to a transfer that could not be made. Only a
/// fault of hardware or firmware explains that.
bool hasWrongBytes(const Finding& finding);

/// A device that the guest's topology file for NCCL has to have.
struct NcclFileDevice {
  PciAddress address;  ///< in the guest
  PcieLink link = {};  ///< of VerifyPlan::links; 0: unknown, so the file's is not compared
};

/// Whether NCCL in the guest finds a topology file. A mirrored tree needs one: QEMU's switch ports
/// report 2.5 GT/s x1, and NCCL then plans with 0.2 GB/s (measured with NCCL 2.28;
/// docs/guest-topology.md). `guestSetup`: the command that writes one, in backticks. A warning if
/// the file lacks one of `devices` or has another link for it than the host. `confFile` and
/// `daemonFile` are paths in the guest. Throws AgentUnavailable.
Finding judgeNcclTopology(
    agent::Agent& agent, const std::string& guestSetup,
    const std::vector<NcclFileDevice>& devices = {}, const std::string& confFile = "/etc/nccl.conf",
    const std::string& daemonFile = "/var/run/nvidia-topologyd/virtualTopology.xml");

/// The same of a guest that can do without such a file; nullopt: it has none.
std::optional<Finding> judgeNcclFile(
    agent::Agent& agent, const std::string& guestSetup, const std::vector<NcclFileDevice>& devices,
    const std::string& confFile = "/etc/nccl.conf",
    const std::string& daemonFile = "/var/run/nvidia-topologyd/virtualTopology.xml");

}  // namespace vfpass::verify
