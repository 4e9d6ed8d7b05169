#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "after_run.hpp"
#include "choose_gpus.hpp"
#include "data_path.hpp"
#include "first_checks.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {

/// One guest of a pair, and the state of its verification. Its findings are in the report.
class PairParty {
 public:
  PairParty(const PairGuest& guest, std::string prefix, VerifyReport& report)
      : guest_(guest),
        prefix_(std::move(prefix)),
        report_(report),
        assigned_(assignGpus(guest.leases, guest.gpus)),
        coverage_(guest.gpus) {}

  /// False when the guest cannot be inspected; the report then has the failed check.
  bool reach(const agent::ProbeFile& probe, const VerifyPlan& plan, const VerifyWatch& watch);

  /// This entry's end of the data path; nullopt when a check failed, which is in the report.
  std::optional<PairEnd> endOf(const Lease& lease);
  void reportUnobserved();
  void judgeGpu(GpuTest test);

  /// The GPUs that this entry is tested with, with the checks of each. Empty: none can be used, and
  /// the report has the reason, unless the VM has none.
  std::vector<TestedGpu> gpusFor(const PairEnd& end);
  void skipGpus(const Lease& lease, const std::string& reason);
  void skipGpus(const std::vector<TestedGpu>& gpus, const std::string& reason);
  void record(const PairEnd& end, bool passed);
  void reportSystem();
  void reportAfterRun();

  /// Quotes the guest's kernel log: at its own findings, and at those of pairs with its name.
  void quoteLog(const std::vector<std::size_t>& ofPairs);

  /// Indices of this guest's findings in the report.
  [[nodiscard]] const std::vector<std::size_t>& own() const { return own_; }
  void reportCoverage(GpuTest test);
  void add(Finding finding);
  void addAll(const std::vector<Finding>& findings);

 private:
  // Asked once; not without a probe.
  void readAfterRun();
  void quoteLog(const std::vector<std::size_t>& which, const std::string& source);

  // nullopt: its host does not tell; if it failed to, the report says so.
  std::optional<HostSide> hostSideOf(const Lease& lease);

  const PairGuest& guest_;
  std::string prefix_;
  VerifyReport& report_;
  std::map<std::string, std::vector<std::size_t>> assigned_;
  GpuCoverage coverage_;
  ReachedGuest reached_;
  std::vector<UsedPort> used_;
  std::optional<GuestView> after_;  ///< nullopt: not asked, or not reported
  bool askedAfterRun_ = false;
  std::vector<std::size_t> own_;
  bool gpuUsable_ = false;
  Layer layer_{[this](const Finding& finding) { add(finding); }};
};

}  // namespace vfpass::verify
