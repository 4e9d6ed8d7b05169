#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge_device.hpp"
#include "judge_gpu_place.hpp"
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
  std::optional<NearestGpu> gpu;
  std::string subject;  ///< subject of findings about this end only
};

/// Moves data from one guest's VF to another's: reachability, writes and reads with and without
/// relaxed ordering, latency. Compares the counters of both VFs after each transfer. Adds findings
/// and figures to the report. A guest that does not allow a step is a finding.
class PairDataPath {
 public:
  /// References must outlive the object.
  PairDataPath(std::string subject, const PairEnd& initiator, const PairEnd& target,
               const VerifyPlan& plan, const VerifyWatch& watch, VerifyReport& report)
      : subject_(std::move(subject)),
        initiator_(initiator),
        target_(target),
        plan_(plan),
        watch_(watch),
        report_(report) {}

  /// Both return false at the first failed check.
  bool reach();
  /// `host`, or `gpu`: GPU memory of both ends, next to host memory.
  bool tryMemory(const std::string& memory);

 private:
  bool tryTransfer(const Transfer& transfer);
  template <typename Judge>
  bool conclude(const std::string& key, const std::vector<std::string>& operation,
                const Judge& judge);
  void judgeCounters(const PairEnd& end, std::uint64_t claimedBytes,
                     const std::optional<VfTraffic>& before);
  [[nodiscard]] PairReports runSession(const std::vector<std::string>& operation) const;
  [[nodiscard]] std::vector<std::string> argumentsFor(const char* command, const PairEnd& end,
                                                      const std::string& token) const;

  std::string subject_;
  const PairEnd& initiator_;
  const PairEnd& target_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport& report_;
};

}  // namespace vfpass::verify
