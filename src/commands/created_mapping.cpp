#include "created_mapping.hpp"

#include <vector>

#include "vfpass/base/shell.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {

void requireTargetOfThisHost(const Session& session, const std::string& command) {
  if (session.options().sysroot != "/" &&
      session.options().configDirectory == GlobalOptions{}.configDirectory) {
    throw Error(command + " --write: not possible on a captured tree (--sysroot)",
                "omit --sysroot, or specify another directory with --config-dir",
                ExitCode::badInput);
  }
}

void reportCreatedMapping(Session& session, const std::string& file, const std::string& vm) {
  const auto& directory = session.options().configDirectory;
  std::string arguments = shellArgument(vm);
  if (directory != GlobalOptions{}.configDirectory) {
    arguments += " --config-dir " + shellArgument(directory.string());
  }
  report::writeCreatedMapping(session.out(), file,
                              {{"vfpass check " + arguments, "compare it with this host"},
                               {"vfpass plan " + arguments, "show what attach would change"},
                               {"vfpass attach " + arguments, "attach the devices"}});
}

}  // namespace vfpass::commands
