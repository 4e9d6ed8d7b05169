#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass {

/// Result of one check. `notObservable` is a separate result and never counts as passed; `waived`:
/// the check does not apply here; `warning`: it works but deserves attention.
enum class Outcome { passed, failed, notObservable, waived, warning };

/// Whose observation a finding is. The guest cannot influence what the host observes. All else
/// rests on what the guest reports, which can be false.
enum class Observer { guest, host };

/// One result of a check.
struct Finding {
  std::string key;      ///< stable, for scripts: `agent`, `rdma-device`, `data-host`
  std::string subject;  ///< the mapping's entry; empty: the VM
  Outcome outcome = Outcome::passed;
  std::string expected;
  std::string seen;    ///< may contain guest-controlled text: escape it on output
  std::string remedy;  ///< a command to run, where there is one; empty when passed
  Observer observer = Observer::guest;
};

/// One entry of `accept:` in host.yaml: a finding of doctor that does not count for some time.
struct AcceptedFinding {
  std::string check;    ///< its name, such as `acs`
  std::string subject;  ///< a device, rail or file as doctor names it; empty: every one
  std::string reason;
  std::string until;  ///< the last day, such as 2027-01-31: such dates compare as texts
};

/// That the host's administrator has accepted a finding for some time, in host.yaml.
struct Acceptance {
  std::string reason;
  std::string until;     ///< the last day, such as 2027-01-31
  bool expired = false;  ///< that day has passed: the finding counts again
};

/// One result of a host check, with the purpose of the check.
struct Diagnosis {
  Finding finding;  ///< its subject is a device, a rail or a file; empty: the host
  std::string why;
  std::optional<Acceptance> acceptance = {};  ///< only of a failure or a warning
};

/// Whether the finding is accepted now. It stays visible, and fails nothing.
bool isAccepted(const Diagnosis& diagnosis);

/// Whether a check failed, and nobody has accepted that.
bool isFailure(const Diagnosis& diagnosis);

/// `accepted until 2027-01-31: reason`, or `the acceptance ended on ...`; empty without one.
std::string describeAcceptance(const Diagnosis& diagnosis);

/// One measurement in the guest. All values come from the guest and are untrusted.
struct Figure {
  std::string subject;
  std::string operation;  ///< `write`, `read`, `send` (round trip), `all-reduce`
  std::string memory;     ///< `host`, `gpu`
  std::uint64_t messageBytes = 0;
  std::uint64_t checkedBytes = 0;
  double gigabitsPerSecond = 0;
  /// Only of a latency run; for `send`, half the round trip.
  std::optional<double> medianMicroseconds = {};
  std::optional<double> tailMicroseconds = {};  ///< 99th percentile
  std::string source = "vfpass-probe";          ///< or the guest's own tool
  bool relaxedOrdering = false;
  /// The same measurement with host memory in the same session: the baseline of a GPU's figure.
  std::optional<double> besideHost = {};
  std::optional<double> limit = {};  ///< Gb/s of data that port and PCI Express can carry
  std::string gpu = {};              ///< which GPU's memory: its entry, or its address in the guest
};

/// Figure::source of the figures of `vfpass verify --sizes`: one for each operation and message
/// size.
inline constexpr const char* sizeFigures = "vfpass-probe --preset sizes";

/// The rate of one pair of VFs that moved data alone, and together with all other pairs.
struct PairRate {
  std::string subject;
  double alone = 0;     ///< Gb/s, writes
  double together = 0;  ///< Gb/s, writes
};

/// `verify --all-pairs`: all pairs at the same time. From the guests, hence untrusted.
struct AllPairs {
  std::string memory;  ///< `host`, `gpu`
  std::vector<PairRate> pairs;
  double overlapSeconds = 0;   ///< during which every pair moved data
  double shortestSeconds = 0;  ///< the shortest run of a pair

  [[nodiscard]] double aggregate() const;  ///< Gb/s, the sum of `together`
};

/// The best figure of one operation in the guest, beside the best one on the host itself.
struct BaselineRatio {
  std::string operation;
  std::string memory;  ///< `host`, `gpu`
  std::string gpu;     ///< as in Figure; empty: host memory
  double guest = 0;    ///< Gb/s
  double host = 0;     ///< Gb/s, more than 0

  [[nodiscard]] double share() const { return guest / host; }
};

/// Something that differs between the guest and the host itself, and may make the guest slower.
struct BaselineFactor {
  std::string name;  ///< the check of verify or doctor that judges it, or the host's setting
  std::string seen;  ///< may contain guest-controlled text
  std::string remedy;
};

/// A VF of the guest beside the baseline of its PF (vfpass/baseline.hpp).
struct BaselineComparison {
  std::string subject;
  std::string time;  ///< of the baseline
  std::vector<BaselineRatio> ratios;
  std::vector<BaselineFactor> factors;  ///< most likely first; empty unless a ratio is low
};

/// The results of `vfpass verify` for one VM.
struct VerifyReport {
  std::string domainName;
  Uuid domain;
  std::string time;      ///< ISO 8601, UTC
  std::string peerName;  ///< the other VM; empty: this VM sent data to itself
  std::vector<Finding> findings;
  std::vector<Figure> figures;
  std::vector<AllPairs> allPairs = {};  ///< one for each memory
  /// How many VFs moved data at the same time, at most, while `figures` were measured.
  std::size_t concurrentVfs = 1;
  /// Of VFs that were then measured again alone, by entry: the figures from before. In no document.
  std::map<std::string, std::vector<Figure>> together = {};
  std::vector<BaselineComparison> baselines = {};  ///< of VFs whose PF has a baseline
};

/// The overall result: failed when any check failed; not observable when a check that counts could
/// not be made; passed otherwise. Without any findings: not observable.
Outcome verdict(const VerifyReport& report);

/// `host`, `guest`.
std::string_view toString(Observer observer);

/// The finding as an observation of the host.
Finding seenByHost(Finding finding);

/// `passed`, `failed`, `not observable`, `waived`, `warning`.
std::string_view toString(Outcome outcome);

/// Whether a measured rate shows that its limit is wrong: limits are computed from the port and
/// from PCI Express links, and nothing can be much faster than they are. Both in one unit; false if
/// there is no limit.
inline bool showsWrongLimit(double measured, double limit) {
  constexpr double inaccuracy = 1.1;  // of the payload per packet and of the measured time
  return limit > 0 && measured > limit * inaccuracy;
}

}  // namespace vfpass
