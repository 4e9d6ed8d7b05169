#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/error.hpp"

namespace vfpass::apply {

/// An operation that was completed or rolled back, and which of them.
struct RecoveredOperation {
  Uuid domain;
  std::string domainName;
  std::string line;
};

/// An operation that could not be recovered, and why.
struct UnrecoveredOperation {
  Uuid domain;
  std::string domainName;
  std::string line;
  std::string remedy;
  ExitCode code = ExitCode::failed;
};

/// The recovered operations, and those that are still open.
struct Recovered {
  std::vector<RecoveredOperation> done;
  std::vector<UnrecoveredOperation> unrecovered;
  std::vector<std::string> warnings;  ///< what recovery left as it is, or could not do
  std::vector<std::string> left;      ///< those on which a living command works, in one line each
  std::optional<Cancelled> stopped;   ///< a signal asked for it; the operations not listed are open
};

/// An operation that was deleted from the journal, and what is left of its steps, in one line each.
struct Abandoned {
  Uuid domain;
  std::string domainName;
  std::string work;
  std::vector<std::string> left;
};

/// Completes or rolls back operations that dead processes left in the journal, of one domain or of
/// all. Leaves operations of living writers alone, and those with steps on a domain whose lock
/// another command holds. `locked`: the domain whose lock the caller holds. Without a hypervisor,
/// leaves operations with steps on domains to the command line. Idempotent.
Recovered recover(Tools& tools, const std::optional<Uuid>& domain = std::nullopt,
                  const std::optional<Uuid>& locked = std::nullopt);

/// Deletes an operation that cannot be completed or rolled back, and changes nothing else: devices,
/// leases and XML stay as they are. Also one that this version does not understand. Throws
/// ExitCode::badInput if it is not open, and ExitCode::refused while a living command works on it.
Abandoned abandon(Tools& tools, std::int64_t number);

/// Throws one Error that names all of them; does nothing without any. ExitCode::refused if all of
/// them wait for devices held by others.
void throwUnrecovered(const std::vector<UnrecoveredOperation>& unrecovered);

}  // namespace vfpass::apply
