#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass {

/// How one check came out. `notObservable` is a result of its own and never a pass; `waived` does
/// not apply here.
enum class Outcome { passed, failed, notObservable, waived };

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
  std::string operation;  ///< `write`, `read`, `send` (there and back)
  std::string memory;     ///< `host`, `gpu`
  std::uint64_t messageBytes = 0;
  std::uint64_t checkedBytes = 0;
  double gigabitsPerSecond = 0;
  std::optional<double> medianMicroseconds;  ///< a latency run: half of what there is of bandwidth
  std::optional<double> tailMicroseconds;    ///< 99th percentile
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

/// `passed`, `failed`, `not observable`, `waived`.
std::string_view toString(Outcome outcome);

}  // namespace vfpass
