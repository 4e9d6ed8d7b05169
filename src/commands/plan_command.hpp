#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "command_session.hpp"
#include "subject.hpp"

namespace vfpass::commands {

/// `plan` and `attach --dry-run`: shows what attach would change, and changes nothing. `out`: file
/// for the plan; may be empty.
ExitCode showPlan(commands::Session& session, const std::string& vm,
                  const commands::ScopeOptions& options, const std::string& out);

/// Adds `--live` and `--config`, for commands that change a domain.
void addScope(CLI::App& command, commands::ScopeOptions& scope);

/// Adds `--dry-run`, `--out FILE` and `--plan FILE`.
void addSavedPlanOptions(CLI::App& command, bool& dryRun, std::string& out, std::string& plan);

}  // namespace vfpass::commands
