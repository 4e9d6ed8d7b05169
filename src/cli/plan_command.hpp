#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "vfpass/session/command_session.hpp"
#include "vfpass/session/subject.hpp"

namespace vfpass::cli {

/// `plan` and `attach --dry-run`: shows what attach would change, and changes nothing. `out`: file
/// for the plan; may be empty.
ExitCode showPlan(session::Session& session, const std::string& vm,
                  const session::ScopeOptions& options, const std::string& out);

/// Adds `--live` and `--config`, for commands that change a domain.
void addScope(CLI::App& command, session::ScopeOptions& scope);

/// Adds `--dry-run`, `--out FILE` and `--plan FILE`.
void addSavedPlanOptions(CLI::App& command, bool& dryRun, std::string& out, std::string& plan);

}  // namespace vfpass::cli
