#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/agent/agent.hpp"

namespace vfpass::agent {

/// Runs a constant script in the guest. Variable data is passed as $0, $1, ... or on standard
/// input, so that the shell never interprets it. Throws AgentUnavailable, like Agent::run.
ExecResult runShell(Agent& agent, const std::string& script, std::vector<std::string> arguments,
                    std::string_view input = {});

/// First line of a guest program's output, at most 200 bytes, escaped for terminals.
std::string firstLine(const std::string& text);

}  // namespace vfpass::agent
