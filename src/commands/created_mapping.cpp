#include "created_mapping.hpp"

#include <vector>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

// Empty for the directory that commands read without it.
std::string configOption(const Session& session) {
  const auto& directory = session.options().configDirectory;
  return directory == GlobalOptions{}.configDirectory
             ? ""
             : " --config-dir " + shellArgument(directory.string());
}

}  // namespace

void requireTargetOfThisHost(const Session& session, const std::string& command) {
  if (session.options().sysroot != "/" &&
      session.options().configDirectory == GlobalOptions{}.configDirectory) {
    throw Error(command + " --write: not possible on a captured tree (--sysroot)",
                "omit --sysroot, or specify another directory with --config-dir",
                ExitCode::badInput);
  }
}

void reportCreatedMapping(Session& session, const std::string& file, const std::string& vm) {
  const std::string arguments = shellArgument(vm) + configOption(session);
  report::writeCreatedFile(session.out(), file,
                           {{"vfpass check " + arguments, "compare it with this host"},
                            {"vfpass plan " + arguments, "show what attach would change"},
                            {"vfpass attach " + arguments, "attach the devices"}});
}

void reportCreatedHostPolicy(Session& session, const std::string& file) {
  const std::string option = configOption(session);
  report::writeCreatedFile(session.out(), file,
                           {{"vfpass host show" + option, "compare it with this host"},
                            {"vfpass host apply" + option, "apply it"}});
}

}  // namespace vfpass::commands
