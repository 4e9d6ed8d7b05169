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
  std::string remedy;
  ExitCode code = ExitCode::failed;
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

/// Throws one Error that names all of it; does nothing when it is empty. ExitCode::refused when
/// all of it waits for devices that somebody else holds.
void throwUnended(const std::vector<UnendedWork>& unended);

}  // namespace vfpass::apply
