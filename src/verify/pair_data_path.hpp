#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "judge_device.hpp"
#include "judge_pair.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// One end of a data path between two guests. References must outlive it.
struct PairEnd {
  agent::Agent& agent;
  const agent::PlacedProbe& probe;
  Lease lease;
  RdmaPort port;
  HostSide host;
  ReadTraffic traffic;
  std::string machine;           ///< as in PairGuest
  std::optional<TestedGpu> gpu;  ///< whose memory the next tryMemory("gpu") uses
  std::string subject;           ///< subject of findings about this end only
  std::string noRdmaCm = {};     ///< why rdma_cm cannot be tried here; empty: it can
};

/// An end with the agent to use for it.
struct SessionEnd {
  agent::Agent& agent;
  const PairEnd& end;
};

/// Runs `listen` in the target's guest and `connect` with these options in the initiator's, and
/// relays between them. Throws Error.
PairReports runSession(const SessionEnd& initiator, const SessionEnd& target,
                       const VerifyPlan& plan, const std::vector<std::string>& operation);

/// Moves data from one guest's VF to another's: reachability, writes and reads with and without
/// relaxed ordering, latency. Compares the counters of both VFs after each transfer. Adds findings
/// and figures to the report. A guest that does not allow a step is a finding.
class PairDataPath {
 public:
  /// References must outlive the object.
  PairDataPath(std::string subject, const PairEnd& initiator, const PairEnd& target,
               const VerifyPlan& plan, VerifyReport& report)
      : subject_(std::move(subject)),
        initiator_(initiator),
        target_(target),
        plan_(plan),
        report_(report) {}

  /// Whether the target's IP address answers the initiator, through the VF's interface. Never
  /// fails: RDMA does not need it.
  void ping();
  /// Whether rdma_cm connects both IP addresses and moves data. Waived if one end cannot try.
  void connectByRdmaCm();
  /// Both return false at the first failed check.
  bool reach();
  /// `host`, or `gpu`: GPU memory of both ends, next to host memory.
  bool tryMemory(const std::string& memory);

  /// Writes and reads between memory of different kinds: `gpu` stands for the initiator's GPU and
  /// the target's host memory, `host` for the opposite. One that fails does not stop the other.
  void tryMixedMemory(const std::string& initiatorMemory);
  /// All message sizes in memory of this kind at both ends.
  void trySizes(const std::string& memory);

 private:
  bool tryTransfer(const Transfer& transfer);
  /// With the counters of both VFs, if it passed.
  template <typename Judge>
  bool concludeWithCounters(const std::string& key, const std::vector<std::string>& options,
                            const Transfer& transfer, const Judge& judge);
  template <typename Judge>
  bool conclude(const std::string& key, const std::vector<std::string>& operation,
                const Judge& judge);
  void judgeCounters(const PairEnd& end, std::uint64_t claimedBytes,
                     const std::optional<VfTraffic>& before);

  std::string subject_;
  const PairEnd& initiator_;
  const PairEnd& target_;
  const VerifyPlan& plan_;
  VerifyReport& report_;
};

}  // namespace vfpass::verify
