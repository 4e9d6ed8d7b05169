#pragma once

#include <string>

#include "command_session.hpp"

namespace vfpass::commands {

/// Throws (bad input) if --write would save what a captured tree has among the files of this host:
/// the addresses are another host's.
void requireTargetOfThisHost(const Session& session, const std::string& command);

/// Prints the file of a new mapping, and the commands that users run next, with this command's
/// `--config-dir`.
void reportCreatedMapping(Session& session, const std::string& file, const std::string& vm);

/// The same for a new host.yaml.
void reportCreatedHostPolicy(Session& session, const std::string& file);

}  // namespace vfpass::commands
