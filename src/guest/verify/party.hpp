#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "after_run.hpp"
#include "choose_gpus.hpp"
#include "data_path.hpp"
#include "first_checks.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {

/// A guest, with what its data paths have in common. Only read while these are verified, so threads
/// may share it.
struct GuestUnderTest {
  const PairGuest& guest;
  std::string prefix;  ///< of the subjects of its findings: empty, or `train1:`
  std::map<std::string, std::vector<std::size_t>> gpus;  ///< assignGpus()
  ReachedGuest reached = {};
  bool gpuUsable = false;            ///< GPU memory is tested, and the guest can use it for RDMA
  std::set<std::string> tools = {};  ///< perftest and nccl-tests in the guest
};

/// What is found out about one guest, in all or over one data path. Its findings are in the report.
class Party {
 public:
  /// References must outlive the object.
  Party(const GuestUnderTest& guest, VerifyReport& report)
      : guest_(guest), report_(report), coverage_(guest.guest.gpus) {}

  void add(Finding finding);
  void addAll(const std::vector<Finding>& findings);
  void addOptional(const std::optional<Finding>& finding);
  void reportUnobserved();

  /// This entry's end of a data path, which is used through `agent`; nullopt when a check failed,
  /// which is in the report.
  std::optional<PathEnd> endOf(const Lease& lease, agent::Agent& agent);

  /// The GPUs that this end is tested with. Empty: none can be used, and the report has the reason,
  /// unless the VM has none.
  std::vector<TestedGpu> gpusFor(const PathEnd& end);
  /// Lets the end use the GPU whose turn it is, the first time with the checks of its place.
  void useGpu(PathEnd& end, const std::vector<TestedGpu>& gpus, std::size_t turn);
  void skipGpus(const Lease& lease, const std::string& reason);
  void skipGpus(const std::vector<TestedGpu>& gpus, const std::string& reason);
  void record(const PathEnd& end, bool passed);
  void reportCoverage(GpuTest test);

  /// Ports through which data was moved.
  [[nodiscard]] const std::vector<UsedPort>& used() const { return used_; }
  /// What the guest reports after the run; nullopt: nothing, or it has no probe. Asked once, and
  /// again after askAgain().
  const std::optional<GuestView>& afterRun();
  void askAgain() { asked_ = false; }

  /// Indices of this guest's findings in the report.
  [[nodiscard]] const std::vector<std::size_t>& own() const { return own_; }
  /// Quotes the guest's kernel log at these findings.
  void quoteLog(const std::vector<std::size_t>& which, const std::string& source);

  /// Takes over what was found out over one path, whose findings are in this report from `first`
  /// on.
  void take(const Party& path, std::size_t first);

 private:
  // nullopt: its host does not tell; if it failed to, the report says so.
  std::optional<HostSide> hostSideOf(const Lease& lease);
  [[nodiscard]] std::vector<std::size_t> gpusAssigned(const Lease& lease) const;

  const GuestUnderTest& guest_;
  VerifyReport& report_;
  GpuCoverage coverage_;
  std::vector<UsedPort> used_;
  std::optional<GuestView> after_;
  bool asked_ = false;
  std::vector<std::size_t> own_;
};

}  // namespace vfpass::verify
