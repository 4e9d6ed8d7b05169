#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "limits.hpp"
#include "nccl_report.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/verify/verify_nccl.hpp"

namespace vfpass::verify {

/// A leased VF of a guest that takes part.
struct NcclNic {
  std::string entry;
  std::string machine;  ///< PairGuest::machine, and the PF there: its port is shared
  PciAddress pf;
  std::string device;          ///< its RDMA device in the guest
  std::optional<Limit> limit;  ///< of transfers of GPU memory; nullopt: not observable
  std::optional<std::uint64_t> movedBytes =
      {};  ///< on the PF, during the run; nullopt: no counters
};

/// One guest's part in the communicator.
struct NcclMember {
  std::string name;    ///< of the VM
  std::string prefix;  ///< of the subjects of its findings: empty, or `VM2:`
  unsigned firstRank = 0;
  std::vector<std::string> gpus = {};      ///< entries, or addresses in the guest; one rank each
  std::vector<std::string> products = {};  ///< names of the same GPUs; empty texts: not reported
  std::vector<NcclNic> nics = {};
  bool connected = false;                 ///< all of its ranks have met the others
  std::optional<NcclReport> report = {};  ///< nullopt: the probe wrote none
  std::string problem = {};               ///< why there is no report
  bool stopped = false;                   ///< by the host, because of others
  std::string remedy = {};

  [[nodiscard]] bool has(std::uint64_t rank) const {
    return rank >= firstRank && rank - firstRank < gpus.size();
  }
};

/// A whole run. Members have ascending ranks without gaps.
struct NcclOutcome {
  std::vector<NcclMember> members;
  std::vector<std::uint64_t> sizes;

  [[nodiscard]] std::size_t ranks() const;
};

/// Whether all ranks met: `nccl-ranks`, which names those that are missing. Pure, as all others.
Finding judgeNcclRanks(const NcclOutcome& outcome);

/// A warning if the GPUs are not all of one product: the slowest determines the figures.
std::optional<Finding> judgeNcclGpus(const NcclOutcome& outcome);

/// Whether each guest ran the same operations and sizes, checked every value and found none wrong.
/// A warning if some were left out for time; not observable without any run of an operation. Adds
/// the figures, unless it fails.
Finding judgeNcclData(const NcclOutcome& outcome, std::vector<Figure>& figures);

/// What NCCL chose, by the log of this member: whether its connections to other guests use RDMA of
/// leased VFs into GPU memory.
Finding judgeNcclTransport(const NcclOutcome& outcome, const NcclMember& member);

/// Whether this member's VFs moved at least what the operations cannot do without. The host's own
/// observation; nullopt if the member does not claim RDMA over a leased VF.
std::optional<Finding> judgeNcclTraffic(const NcclOutcome& outcome, const NcclMember& member);

/// The operations and sizes that were asked for, each with the largest number of iterations that
/// any member reports: one guest cannot make its part look smaller.
std::vector<NcclRun> requestedRuns(const NcclOutcome& outcome);

/// The least that a guest with `local` of `ranks` ranks sends or receives, in either direction, in
/// these runs: of all-reduce the whole result, of all-gather what the others contribute or what it
/// contributes itself.
std::uint64_t leastTraffic(const std::vector<NcclRun>& runs, std::size_t local, std::size_t ranks);

/// The bus bandwidth of each operation beside what limits it, the published figure and the last
/// run. Only all-gather's is compared with a share of the limit.
Finding judgeNcclBandwidth(const NcclOutcome& outcome, const std::optional<double>& minimumShare,
                           const std::vector<Figure>& lastRun, std::vector<Figure>& figures);

/// What the connections of one member's log show.
struct Transports {
  std::set<std::string> used;        ///< entries of leased VFs with GPUDirect
  std::set<std::string> withoutGpu;  ///< entries of leased VFs without GPUDirect
  std::set<std::string> notLeased;   ///< RDMA devices
  std::set<std::string> sockets;     ///< transports
  std::set<std::string> impossible;  ///< between guests
  std::set<std::string> unknown;     ///< plugins, and devices that the log does not name
  std::set<std::string> inside;      ///< between GPUs of this guest
};

/// Of connections to other guests; if there is none, of those between this guest's GPUs.
Transports transportsOf(const NcclOutcome& outcome, const NcclMember& member);

}  // namespace vfpass::verify
