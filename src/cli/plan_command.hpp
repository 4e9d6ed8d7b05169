#pragma once

#include <string>

#include "vfpass/session/command_session.hpp"
#include "vfpass/session/subject.hpp"

namespace vfpass::cli {

/// `plan` and `attach --dry-run`: shows what attach would change, and changes nothing.
ExitCode showPlan(session::Session& session, const std::string& vm,
                  const session::ScopeOptions& options);

}  // namespace vfpass::cli
