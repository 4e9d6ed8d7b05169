#include "commands.hpp"

namespace vfpass::cli {

void addScope(CLI::App& command, ScopeOptions& scope) {
  command.add_flag("--live", scope.live, "the running domain only");
  command.add_flag("--config", scope.config,
                   "the persistent configuration only: it counts from the next start on");
}

}  // namespace vfpass::cli
