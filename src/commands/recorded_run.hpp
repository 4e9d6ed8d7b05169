#pragma once

#include <iosfwd>
#include <optional>

#include "commands.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {

/// Message and remedy of the error that ends a command.
void printError(std::ostream& err, const Error& error);

/// The end of a command.
struct EndedRun {
  ExitCode code = ExitCode::done;
  std::optional<Error> error;  ///< that has ended it; it has been printed
};

/// Runs the command. An Error ends its operation, has its entry in the journal, and is printed;
/// with --json it also becomes the document of a command that has not printed one. Other exceptions
/// end the operation, too, and pass through.
EndedRun runAndRecord(Session& session, const Runner& runner);

}  // namespace vfpass::commands
