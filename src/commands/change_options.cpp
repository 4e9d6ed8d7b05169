#include "change_options.hpp"

namespace vfpass::commands {

void addVmsAndScope(CLI::App& command, ChangeOptions& options, const std::string& allDescription) {
  command.add_option("vm", options.vm, "Domain name or UUID")->type_name("VM");
  addAll(command, options.all, allDescription);
  addScope(command, options.scope);
}

void addPlanOptions(CLI::App& command, ChangeOptions& options) {
  addSavedPlanOptions(command, options.dryRun, options.output.file, options.plan);
  addNoXml(command, options.output.noXml);
  command.get_option("--no-xml")->needs("--dry-run");
}

namespace {

ExitCode runChange(Session& session, const std::string& name, const ChangeOptions& options,
                   const ChangeCommand& change) {
  requireVmOrAll(name, options.vm, options.all);
  if (!options.all.all) {
    return change.run(session, options.vm);
  }
  return runForAll(session,
                   {name, options.all.stopOnFailure, options.dryRun, change.list, change.run});
}

}  // namespace

void runWhenSelected(CLI::App& command, Runner& runner,
                     const std::shared_ptr<ChangeOptions>& options, const ChangeCommand& change) {
  command.callback([&command, &runner, options, change] {
    options->all.unsuitable = specifiedAmong(command, {"--output", "--plan"});
    runner = [name = command.get_name(), options, change](Session& session) {
      return runChange(session, name, *options, change);
    };
  });
}

}  // namespace vfpass::commands
