#pragma once

#include <optional>
#include <string>
#include <vector>

#include "concurrent_runs.hpp"
#include "party.hpp"

namespace vfpass::verify {

/// One data path of a verification.
struct PathPart {
  std::string subject;        ///< `rail0`, `rail0 - train1:rail0`
  std::string position;       ///< for the progress, such as `rail0, 1 of 8`
  std::vector<Lease> leases;  ///< the initiator's and the target's, in a loopback the same
  std::vector<Lease> idle;    ///< VFs of the first guest that move no data meanwhile
};

/// Verifies one data path: devices, host memory, then the memory of its GPUs; stops at the first
/// failed check. Between two guests, also whether they reach each other; a loopback is a path with
/// one guest, which is both ends. Threads may verify different loopbacks of a guest at the same
/// time, each with an agent of its own.
class PathVerification {
 public:
  /// `guests`: one, or the initiator and the target. References must outlive the object.
  PathVerification(const std::vector<GuestUnderTest>& guests, PathPart part, const VerifyPlan& plan,
                   const VerifyWatch& watch);
  PathVerification(const PathVerification&) = delete;
  PathVerification& operator=(const PathVerification&) = delete;

  /// Uses the first guest through `agent`. An error is the last finding.
  void run(agent::Agent& agent);

  /// False: an error stopped it.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] VerifyReport& report() { return report_; }
  [[nodiscard]] const std::vector<Party>& parties() const { return parties_; }
  /// The pair, if data has been moved through host memory; nullopt for a loopback.
  [[nodiscard]] std::optional<WorkingPair> working() const;
  /// GPU memory worked with each GPU of both ends.
  [[nodiscard]] bool gpusPassed() const { return gpusPassed_; }

 private:
  [[nodiscard]] bool isLoopback() const { return parties_.size() == 1; }
  [[nodiscard]] std::string key(const std::string& name) const;
  PathEnd& initiator() { return ends_.front(); }
  PathEnd& target() { return ends_.back(); }
  DataPath path() { return {part_.subject, initiator(), target(), plan_, report_}; }

  void verify(agent::Agent& agent);
  bool openEnds(agent::Agent& agent);
  bool moveThroughHost();
  bool reachTarget(DataPath& path);
  void moveThroughGpus();
  bool moveThroughGpu();
  void moveThroughOneGpu(const std::vector<std::vector<TestedGpu>>& gpus);
  void reportMissingGpu(const std::vector<std::vector<TestedGpu>>& gpus);
  void runTools(const std::optional<TestedGpu>& gpu);
  void compare(const char* memory, std::size_t first);
  [[nodiscard]] std::optional<Finding> besideHost(std::size_t first);
  void addOptional(const std::optional<Finding>& finding);

  const std::vector<GuestUnderTest>& guests_;
  PathPart part_;
  const VerifyPlan& plan_;
  const VerifyWatch& watch_;
  VerifyReport report_;
  std::vector<Party> parties_;  ///< of each guest
  std::vector<PathEnd> ends_;   ///< as many, if both are usable
  bool ended_ = true;
  bool hostPassed_ = false;
  bool gpusPassed_ = false;
  Layer layer_{[this](const Finding& finding) { parties_.front().add(finding); }};
};

}  // namespace vfpass::verify
