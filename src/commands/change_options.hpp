#pragma once

#include <functional>
#include <memory>
#include <string>

#include "all_vms.hpp"
#include "commands.hpp"
#include "subject.hpp"

namespace vfpass::commands {

/// The options of a command that changes the devices of one VM or of all: `attach`, `detach`.
struct ChangeOptions {
  std::string vm;
  AllOptions all;
  ScopeOptions scope;
  bool dryRun = false;
  PlanOutput output;
  std::string plan;  ///< file of a saved plan; may be empty
};

/// Adds the VM, --all with this description, --live and --config.
void addVmsAndScope(CLI::App& command, ChangeOptions& options, const std::string& allDescription);

/// Adds --dry-run, --output, --plan and --no-xml, which come last in the help.
void addPlanOptions(CLI::App& command, ChangeOptions& options);

/// What such a command does.
struct ChangeCommand {
  /// For one VM, a UUID or a name. Throws Error if it fails.
  std::function<ExitCode(Session&, const std::string& vm)> run;
  std::function<VmList(Session&)> list;  ///< for --all: AllRun::list
};

/// Lets `runner` run the command for its VM or for all, when the user selects it.
void runWhenSelected(CLI::App& command, Runner& runner,
                     const std::shared_ptr<ChangeOptions>& options, const ChangeCommand& change);

}  // namespace vfpass::commands
