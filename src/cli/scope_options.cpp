#include "commands.hpp"

namespace vfpass::cli {

void addScope(CLI::App& command, session::ScopeOptions& scope) {
  command.add_flag("--live", scope.live, "Affect only the running domain");
  command.add_flag("--config", scope.config,
                   "Affect only the persistent configuration, which the next start uses");
}

}  // namespace vfpass::cli
