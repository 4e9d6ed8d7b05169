#pragma once

#include <string>

#include "command_session.hpp"

namespace vfpass::commands {

/// Prints the file of a new mapping, and the commands that users run next, with this command's
/// `--config-dir`.
void reportCreatedMapping(Session& session, const std::string& file, const std::string& vm);

}  // namespace vfpass::commands
