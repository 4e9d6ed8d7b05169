#include "vfpass/agent/run_shell.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::agent {

ExecResult runShell(Agent& agent, const std::string& script, std::vector<std::string> arguments,
                    std::string_view input) {
  arguments.insert(arguments.begin(), {"-c", script});
  return agent.run("/bin/sh", arguments, input);
}

std::string firstLine(const std::string& text) {
  return printable(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
}

}  // namespace vfpass::agent
