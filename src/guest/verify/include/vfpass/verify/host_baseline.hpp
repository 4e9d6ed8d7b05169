#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/baseline.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::verify {

/// Runs the probe on this host with these arguments and returns its report. Throws Error.
using RunHostProbe = std::function<nlohmann::json(const std::vector<std::string>& arguments)>;

/// What to measure on the host.
struct BaselinePlan {
  PciAddress pf;
  std::optional<PciAddress> gpu = {};
  std::uint64_t messageBytes = std::uint64_t{64} << 10U;
  std::uint64_t iterations = 1000;
  std::chrono::seconds timeout = deadlines::verify;  ///< of the whole measurement
};

/// Measures a PF in loopback as verify measures a VF in its guest: writes and reads of host memory,
/// and with a GPU of its memory, with and without relaxed ordering, every byte checked.
/// Figure::subject is empty, Figure::gpu the GPU's address. `progress` is called when the next part
/// begins, and no probe runs then. Changes nothing: without a GPU the probe does not ask NVIDIA's
/// libraries, which may load modules. Throws Error (unverified) if the PF has no active port with a
/// GID, the host's driver cannot use the GPU, or a transfer fails.
std::vector<Figure> measureBaseline(const RunHostProbe& run, const BaselinePlan& plan,
                                    const std::function<void(const std::string& part)>& progress);

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
  std::map<std::string, std::string> functions = {};      ///< address on the host, by entry
  std::map<std::string, std::string> settings = {};       ///< as Baseline::settings
  std::vector<BaselineFactor> domain = {};                ///< how the VM runs, where it may cost
  std::function<std::vector<Finding>()> hostChecks = {};  ///< doctor's; only called if needed
};

/// The baseline of this PF: that of the same card, wherever it was then, or else that of its slot.
/// nullptr: none. Pure.
const Baseline* chooseBaseline(const std::vector<Baseline>& baselines, const PciAddress& pf,
                               const std::string& guid);

/// Whether a figure of this VF is a lower share of the host's own. False if they cannot be
/// compared.
bool isBelowBaseline(const BaselineSubject& subject, const std::vector<Figure>& figures);

/// What differs between this VF's guest and the host itself during its baseline, most likely cause
/// first. `lowOnGpu`: a figure of GPU memory is low, so that the path to the GPU counts.
std::vector<BaselineFactor> baselineFactors(const BaselineSubject& subject,
                                            const VerifyReport& report, bool lowOnGpu);

/// Adds a finding `baseline` for each VF that has moved data, and the comparison where its PF has a
/// baseline: the best figure of each operation and memory beside the host's own, of messages of the
/// same size. A warning below expectedBaselineShare, with what differs from the host, taken from
/// the report's other findings, from doctor's and from `settings`. Also a warning if the VF is only
/// low while others move data, by the figures that the report has of that. Waived without a
/// baseline, and if card, slot, host or firmware is another one: then nothing is compared. Also
/// waived, with the comparison, if the card was or may have been in use during the baseline and no
/// share is low.
void judgeBaselines(const std::vector<BaselineSubject>& subjects, VerifyReport& report);

}  // namespace vfpass::verify
