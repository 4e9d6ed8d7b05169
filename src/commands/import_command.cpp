#include <algorithm>

#include "commands.hpp"
#include "created_mapping.hpp"
#include "host_facts.hpp"
#include "import_input.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/new_mapping.hpp"
#include "vfpass/report/import_report.hpp"

namespace vfpass::commands {
namespace {

struct ImportOptions {
  std::string vm;
  bool host = false;
  bool write = false;
};

[[noreturn]] void throwNothing(const std::string& vm, const std::vector<LeftOut>& leftOut) {
  if (leftOut.empty()) {
    throw Error("domain " + printable(vm) + " has no device of this host",
                "run `vfpass init " + shellArgument(vm) + "` to propose a mapping");
  }
  std::vector<std::string> lines;
  std::ranges::transform(leftOut, std::back_inserter(lines), [](const LeftOut& each) {
    return printable(describe(each)) + (each.remedy.empty() ? "" : "; " + each.remedy);
  });
  throw Error("domain " + printable(vm) + " has no device that can be taken over:\n  " +
              join(lines, "\n  "));
}

void warnOf(Session& session, const ImportedMapping& mapping) {
  const auto withRemedy = [](const std::string& text, const std::string& remedy) {
    return text + (remedy.empty() ? "" : "; " + remedy);
  };
  for (const LeftOut& each : mapping.leftOut) {
    session.warn(withRemedy("not taken over: " + describe(each), each.remedy));
  }
  for (const ImportRefusal& each : mapping.refusals) {
    session.warn(withRemedy("attach would refuse: " + each.message, each.remedy));
  }
}

ExitCode importVm(Session& session, const ImportOptions& options) {
  const ImportSubject subject = importSubject(session, options.vm);
  report::ImportReport report;
  report.vm = subject.domain.name;
  report.command = "vfpass import " + shellArgument(options.vm);
  report.schemaFile = VFPASS_DATA_DIRECTORY "/mapping.schema.json";
  const plan::ImportInput input = importInput(session, subject);
  report.mapping = plan::importMapping(input);
  if (report.mapping.empty()) {
    throwNothing(report.vm, report.mapping.leftOut);
  }
  report.mapping.refusals = importRefusals(session, subject, input, report::mappingText(report));
  warnOf(session, report.mapping);
  const std::string text = report::mappingText(report);
  std::string file;
  if (options.write) {
    file = config::writeNewMapping(session.options().configDirectory,
                                   {report.vm, report.vm, toString(subject.domain.uuid), text});
  }
  if (options.write && !session.style().json) {
    reportCreatedMapping(session, file, report.vm);
  } else {
    report::writeImport(session.out(), report, text, file, session.style());
  }
  return ExitCode::done;
}

ExitCode importHost(Session& session, const ImportOptions& options) {
  report::ImportHostReport report{"vfpass import --host", importedHost(session)};
  if (report.host.pfs.empty()) {
    throw Error("nothing to import: no PF of this host has VFs, and no file sets any up at boot",
                "run `vfpass pf list` to list the PFs");
  }
  const std::string text = report::hostText(report);
  std::string file;
  if (options.write) {
    file = config::writeNewHostPolicy(session.options().configDirectory, text).string();
  }
  if (options.write && !session.style().json) {
    reportCreatedHostPolicy(session, file);
  } else {
    report::writeImport(session.out(), report, text, file, session.style());
  }
  return ExitCode::done;
}

ExitCode runImport(Session& session, const ImportOptions& options) {
  if (options.host != options.vm.empty()) {
    throw Error(options.host ? "`vfpass import`: VM " + printable(options.vm) + " excludes --host"
                             : "`vfpass import` needs an argument: VM or --host",
                "run `vfpass import --help`", ExitCode::badInput);
  }
  if (options.write) {
    requireTargetOfThisHost(session, "import");
  }
  return options.host ? importHost(session, options) : importVm(session, options);
}

}  // namespace

void addImport(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "import", "Propose the mapping of a VM that has devices already, or host.yaml, with reasons");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM");
  command->add_flag("--host", options->host,
                    "Propose host.yaml from the VF counts, modes and MTUs that the PFs have");
  command->add_flag("--write", options->write,
                    "Save it in the configuration directory, if there is none yet");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return runImport(session, *options); };
  });
}

}  // namespace vfpass::commands
