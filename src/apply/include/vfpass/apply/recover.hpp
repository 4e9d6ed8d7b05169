#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// What could not be brought to an end, and why.
struct UnendedWork {
  Uuid domain;
  std::string line;
};

/// One line for each operation that was brought to an end, and what is still open.
struct Recovered {
  std::vector<std::string> ended;
  std::vector<UnendedWork> unended;
};

/// Finishes or undoes what dead processes left in the journal; of one domain, or of all. Operations
/// whose writer lives are left alone. Without a hypervisor, operations with steps on domains are
/// left for the command line. A second call ends nothing more.
Recovered recover(Tools& tools, const std::optional<Uuid>& domain = std::nullopt);

/// Throws one Error that tells all of it; does nothing when there is none.
void throwUnended(const std::vector<UnendedWork>& unended);

/// Puts the leases that domains carry in their metadata into a database that never knew them (it
/// was lost, or replaced). A lease that this database handed out and dropped is not brought back.
/// Returns one line for each.
std::vector<std::string> adoptLeases(state::Database& database,
                                     const std::vector<domain::ParsedDomain>& domains,
                                     const std::vector<Uuid>& active, const std::string& bootId);

}  // namespace vfpass::apply
