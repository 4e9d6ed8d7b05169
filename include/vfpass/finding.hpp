#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass {

/// How one check came out. `notObservable` is a result of its own and never a pass; `waived` does
/// not apply here; `warning` works, and should be looked at.
enum class Outcome { passed, failed, notObservable, waived, warning };

/// One result of a check.
struct Finding {
  std::string key;      ///< stable, for scripts: `agent`, `rdma-device`, `data-host`
  std::string subject;  ///< the mapping's entry; empty: the VM
  Outcome outcome = Outcome::passed;
  std::string expected;
  std::string seen;    ///< may hold the guest's word: escaped wherever it is shown
  std::string remedy;  ///< a command to type, where there is one; empty when passed
};

/// One measurement in the guest. All of it is the guest's word.
struct Figure {
  std::string subject;
  std::string operation;  ///< `write`, `read`, `send` (there and back), `all-reduce`
  std::string memory;     ///< `host`, `gpu`
  std::uint64_t messageBytes = 0;
  std::uint64_t checkedBytes = 0;
  double gigabitsPerSecond = 0;
  std::optional<double> medianMicroseconds =
      {};  ///< a latency run: half of what there is of bandwidth
  std::optional<double> tailMicroseconds = {};  ///< 99th percentile
  std::string source = "vfpass-probe";          ///< or the guest's own tool
  bool relaxedOrdering = false;
  /// Host memory, the same otherwise, in the same session: what a GPU's figure is held against.
  std::optional<double> besideHost = {};
  std::optional<double> limit = {};  ///< Gb/s of data that port and PCI Express let through
};

/// What `vfpass verify` found about one VM.
struct VerifyReport {
  std::string domainName;
  Uuid domain;
  std::string time;      ///< ISO 8601, UTC
  std::string peerName;  ///< the other VM; empty: data went from this one to itself
  std::vector<Finding> findings;
  std::vector<Figure> figures;
};

/// The whole: failed when any check failed; not observable when one that counts could not be made;
/// passed otherwise. No findings at all are not observable.
Outcome verdict(const VerifyReport& report);

/// `passed`, `failed`, `not observable`, `waived`, `warning`.
std::string_view toString(Outcome outcome);

}  // namespace vfpass
