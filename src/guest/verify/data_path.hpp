#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "choose_gpus.hpp"
#include "judge_device.hpp"
#include "judge_pair.hpp"
#include "judge_transfer.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// One end of a data path. References must outlive it.
struct PathEnd {
  agent::Agent& agent;
  const agent::PlacedProbe& probe;
  Lease lease;
  RdmaPort port;
  HostSide host;
  ReadTraffic traffic;
  std::string machine;                ///< as in PairGuest
  std::string subject;                ///< subject of findings about this end only
  std::string noRdmaCm;               ///< why rdma_cm cannot be tried here; empty: it can
  std::vector<Lease> idle = {};       ///< VFs of its guest that move no data meanwhile
  std::optional<TestedGpu> gpu = {};  ///< whose memory transfers in GPU memory use
};

/// An end with the agent to use for it.
struct SessionEnd {
  agent::Agent& agent;
  const PathEnd& end;
};

/// Runs `listen` in the target's guest and `connect` with these options in the initiator's, and
/// relays between them. Throws Error.
PairReports runSession(const SessionEnd& initiator, const SessionEnd& target,
                       const VerifyPlan& plan, const std::vector<std::string>& operation);

/// What the host has counted so far for an end, which must outlive it.
struct Counted {
  const PathEnd* end;
  std::optional<VfTraffic> own;
  std::vector<OtherVf> others;  ///< the guest's idle VFs
};

/// Of both ends, first the initiator; of a loopback, which has the same end twice, once.
std::vector<Counted> countedAt(const PathEnd& initiator, const PathEnd& target);

/// Compares the counters of each end's VF with the bytes that its guest claims to have moved since
/// `before`. If they have moved enough, also checks that no idle VF has moved as much. `before`: as
/// countedAt() has returned it.
void judgeCounters(std::vector<Counted> before, const std::string& label,
                   const ClaimedBytes& ofInitiator, std::vector<Finding>& findings);

/// Moves data from one VF to another: writes and reads with and without relaxed ordering, latency,
/// sizes. A loopback has the same end twice, and one probe for both. Compares the counters of the
/// VFs after each transfer. Adds findings and figures to the report. Of two guests, one that does
/// not allow a step is a finding; in a loopback that is an error: throws AgentUnavailable.
class DataPath {
 public:
  /// References must outlive the object.
  DataPath(std::string subject, const PathEnd& initiator, const PathEnd& target,
           const VerifyPlan& plan, VerifyReport& report)
      : subject_(std::move(subject)),
        initiator_(initiator),
        target_(target),
        software_(initiator.port.software || target.port.software),
        plan_(plan),
        report_(report) {}

  /// Whether the target's IP address answers the initiator, through the VF's interface. Never
  /// fails: RDMA does not need it.
  void ping();
  /// Whether rdma_cm connects both IP addresses and moves data. Waived if one end cannot try.
  void connectByRdmaCm();
  /// Both return false at the first failed check.
  bool reach();
  /// `host`, or `gpu`: GPU memory of both ends, next to host memory. Writes and reads, then the
  /// latency.
  bool tryMemory(const std::string& memory);

  /// Writes and reads between memory of different kinds: `gpu` stands for the initiator's GPU and
  /// the target's host memory, `host` for the opposite. One that fails does not stop the other.
  void tryMixedMemory(const std::string& initiatorMemory);
  /// All message sizes in memory of this kind at both ends.
  void trySizes(const std::string& memory);

 private:
  using JudgeTransfer = Finding(const Transfer&, const PairReports&, std::vector<Figure>&);

  [[nodiscard]] bool isLoopback() const { return &initiator_ == &target_; }
  [[nodiscard]] std::string guestSetups() const;
  [[nodiscard]] Transfer transferIn(const std::string& memory) const;
  bool tryTransfer(const Transfer& transfer);
  bool tryLatency(const Transfer& latency);
  [[nodiscard]] PairReports exchange(const std::vector<std::string>& operation) const;
  /// `name`: of the finding's key, if there is no report.
  bool conclude(const std::string& name, const std::vector<std::string>& operation,
                const std::function<Finding(const PairReports&)>& judge);
  /// With the counters of the VFs, if it passed.
  bool concludeWithCounters(const std::string& name, const std::vector<std::string>& options,
                            const Transfer& transfer, JudgeTransfer* judge);

  std::string subject_;
  const PathEnd& initiator_;
  const PathEnd& target_;
  bool software_;  ///< one end is SoftRoCE
  const VerifyPlan& plan_;
  VerifyReport& report_;
};

}  // namespace vfpass::verify
