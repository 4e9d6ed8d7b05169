#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/baseline.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// A lower share of the host's own figure is a warning.
inline constexpr double expectedBaselineShare = 0.9;

/// One VF of a running VM, and its PF and host as they are now.
struct BaselineSubject {
  std::string entry;
  PciAddress pf;
  std::string guid;  ///< of the PF's RDMA device; empty: unknown
  std::string firmware;
  std::string machine;                                    ///< the host's /etc/machine-id
  std::optional<Baseline> baseline = {};                  ///< chooseBaseline(); nullopt: none
  std::map<std::string, std::string> gpus = {};           ///< address on the host, by entry
  std::map<std::string, std::string> settings = {};       ///< as Baseline::settings
  std::vector<BaselineFactor> domain = {};                ///< how the VM runs, where it may cost
  std::function<std::vector<Finding>()> hostChecks = {};  ///< doctor's; only called if needed
};

/// The baseline of this PF: that of the same card, wherever it was then, or else that of its slot.
/// nullptr: none. Pure.
const Baseline* chooseBaseline(const std::vector<Baseline>& baselines, const PciAddress& pf,
                               const std::string& guid);

/// What differs between this VF's guest and the host itself during its baseline, most likely cause
/// first. `lowOnGpu`: a figure of GPU memory is low, so that the path to the GPU counts.
std::vector<BaselineFactor> baselineFactors(const BaselineSubject& subject,
                                            const VerifyReport& report, bool lowOnGpu);

/// Adds a finding `baseline` for each VF that has moved data, and the comparison where its PF has a
/// baseline: the best figure of each operation and memory beside the host's own, of messages of the
/// same size. A warning below expectedBaselineShare, with what differs from the host, taken from
/// the report's other findings, from doctor's and from `settings`. Waived without a baseline, and
/// if card, slot, host or firmware is another one: then nothing is compared. Also waived, with the
/// comparison, if the card was or may have been in use during the baseline and no share is low.
void judgeBaselines(const std::vector<BaselineSubject>& subjects, VerifyReport& report);

}  // namespace vfpass::verify
