#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/guest/agent.hpp"

namespace vfpass::guest {

/// Runs a constant script in the guest. What varies comes as $0, $1, ... or on its input: no data
/// is ever read as shell. Throws AgentUnavailable, like Agent::run.
ExecResult runShell(Agent& agent, const std::string& script, std::vector<std::string> arguments,
                    std::string_view input = {});

/// Of what a program in the guest said, safe for terminals.
std::string firstLine(const std::string& text);

}  // namespace vfpass::guest
