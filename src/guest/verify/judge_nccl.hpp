#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "limits.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {

/// A collective operation of one size.
struct NcclRun {
  std::string operation;    ///< `all-reduce`, `all-gather`
  std::uint64_t bytes = 0;  ///< of the whole result
  std::uint64_t iterations = 0;
  double busGigabytes = 0;  ///< per second
  std::uint64_t checkedValues = 0;
  std::uint64_t wrongValues = 0;
  std::string firstWrong = {};  ///< empty: none
};

/// An operation and size that did not run.
struct NcclOmission {
  std::string operation;
  std::uint64_t bytes = 0;
  std::string reason;
};

/// A network device as NCCL numbers it.
struct NcclDevice {
  std::uint64_t number = 0;
  std::string name;  ///< RDMA device or interface
};

/// Channels between two ranks over one transport.
struct NcclConnection {
  std::uint64_t from = 0;  ///< rank
  std::uint64_t to = 0;
  std::string transport;                ///< `NET/IB`, `P2P/CUMEM`, `SHM/direct/direct`
  std::optional<std::uint64_t> device;  ///< number of a network device
  bool gpuDirect = false;
  std::optional<std::uint64_t> proxy = {};  ///< rank whose NIC it uses instead (PXN)
};

/// What `vfpass-probe nccl` reported in one guest. Every text is untrusted.
struct NcclReport {
  std::string version;
  std::vector<NcclRun> runs = {};
  std::vector<NcclOmission> omissions = {};
  std::string network = {};    ///< `IB`, `Socket`, a plugin
  std::string bootstrap = {};  ///< interface and address over which the ranks meet
  std::vector<NcclDevice> devices = {};
  std::vector<NcclConnection> connections = {};
  bool connectionsLeftOut = false;  ///< the log has more than the report
  std::vector<std::string> warnings = {};
  std::string error = {};  ///< empty: it ran to its end
  std::string remedy = {};
  std::string stage = {};                   ///< of a failure: what it was doing
  std::optional<std::uint64_t> ranks = {};  ///< of all guests; nullopt: not reported
  std::vector<std::uint64_t> local = {};    ///< its own ranks; empty: not reported
};

/// Members that are missing or of another type read as empty, and lists are bounded.
NcclReport readNcclReport(const nlohmann::json& document);

/// A leased VF of a guest that takes part.
struct NcclNic {
  std::string entry;
  std::string machine;  ///< PairGuest::machine, and the PF there: its port is shared
  PciAddress pf;
  std::string device;          ///< its RDMA device in the guest
  std::optional<Limit> limit;  ///< of transfers of GPU memory; nullopt: not observable
  std::optional<MovedBytes> movedBytes = {};  ///< on the PF, during the run; nullopt: no counters
  std::optional<MovedBytes> rdmaBytes = {};   ///< of these by RDMA; nullopt: the host cannot tell
};

/// One guest's part in the communicator.
struct NcclMember {
  std::string name;    ///< of the VM
  std::string prefix;  ///< of the subjects of its findings: empty, or `VM2:`
  unsigned firstRank = 0;
  std::vector<std::string> gpus = {};      ///< entries, or addresses in the guest; one rank each
  std::vector<std::string> products = {};  ///< names of the same GPUs; empty texts: not reported
  std::vector<NcclNic> nics = {};
  /// Of the same GPUs to the PF of each VF, on the host, by the VF's entry.
  std::vector<std::map<std::string, std::string>> distances = {};
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
/// leased VFs into GPU memory; a warning if a VF of the VM is nearer to a GPU than those it uses.
Finding judgeNcclTransport(const NcclOutcome& outcome, const NcclMember& member);

/// `gpu1 over rail0 (SYS), rail1 is nearer (PIX)`: the GPUs of this member that reach the other
/// guests only by VFs that are farther from them than another one of this VM.
std::set<std::string> farNics(const NcclOutcome& outcome, const NcclMember& member);

/// Whether the VFs that this member's log names moved at least what the operations cannot do
/// without, by RDMA if the host can tell. The host's own observation; nullopt if the member does
/// not claim RDMA over a leased VF.
std::optional<Finding> judgeNcclTraffic(const NcclOutcome& outcome, const NcclMember& member);

/// The operations and sizes that were asked for, each with the largest number of iterations that
/// any member reports: one guest cannot make its part look smaller.
std::vector<NcclRun> requestedRuns(const NcclOutcome& outcome);

/// The least that a guest with `local` of `ranks` ranks sends and receives in these runs, with any
/// algorithm: of all-reduce, for each value its contribution or the result, in both directions; of
/// all-gather, it sends what it contributes and receives what the others do.
ClaimedBytes leastTraffic(const std::vector<NcclRun>& runs, std::size_t local, std::size_t ranks);

/// The bus bandwidth of each operation beside what limits it, the published figure and the last
/// run. Only all-gather's is compared with a share of the limit.
Finding judgeNcclBandwidth(const NcclOutcome& outcome, const std::optional<double>& minimumShare,
                           const std::vector<Figure>& lastRun, std::vector<Figure>& figures);

/// The RDMA devices of a connection in this member's log; empty: the log does not name any.
std::vector<std::string> rdmaDevicesOf(const NcclMember& member, const NcclConnection& connection);

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

inline constexpr const char* allGather = "all-gather";
inline constexpr std::array<const char*, 2> collectives{"all-reduce", allGather};

/// `10 GiB`. Sizes are powers of two, or multiples of them.
std::string wholeUnitsText(std::uint64_t bytes);

/// `all-gather of 10 GiB`
std::string requestText(const NcclRun& run);

std::string listOf(const std::set<std::string>& words);

/// nullptr: the report has none.
const NcclRun* runOf(const NcclReport& report, const std::string& operation, std::uint64_t bytes);
const NcclOmission* omissionOf(const NcclReport& report, const NcclRun& request);

/// Empty: the report has only operations and sizes that were asked for, each once. So sizes are
/// plausible, and there are few items, from here on.
std::string requestProblem(const NcclOutcome& outcome, const NcclReport& report);

/// Each operation and size that was asked for, without figures.
std::vector<NcclRun> requestsOf(const NcclOutcome& outcome);

/// The member that ran it; nullptr: none.
const NcclMember* anyThatRan(const NcclOutcome& outcome, const NcclRun& request);

}  // namespace vfpass::verify
