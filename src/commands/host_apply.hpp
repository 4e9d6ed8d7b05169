#pragma once

#include <string>

#include "command_session.hpp"

namespace vfpass::commands {

struct HostApplyOptions {
  bool dryRun = false;
  bool allowDisruption = false;
  std::string only;  ///< `pfs`, `soft-roce`; empty: both
  std::string out;   ///< file for the plan of a dry run; may be empty
  std::string plan;  ///< file of a saved plan; may be empty
};

/// `host apply`: one plan for each PF of host.yaml and one for the SoftRoCE links. A plan that
/// fails does not stop the others.
ExitCode applyHost(commands::Session& session, const HostApplyOptions& options);

}  // namespace vfpass::commands
