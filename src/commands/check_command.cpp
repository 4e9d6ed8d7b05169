#include <algorithm>
#include <filesystem>
#include <ostream>

#include "attach_input.hpp"
#include "commands.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

struct CheckOptions {
  std::string target;
  std::string schema;  ///< `mapping` or `host`; empty: validate files
};

void addProblem(const config::Problem& problem, std::vector<report::CheckEntry>& entries) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.file == problem.place.file;
  });
  if (found != entries.end()) {
    found->problems.push_back(toString(problem));
    return;
  }
  entries.push_back({"", problem.place.file, {toString(problem)}, {}, {}, {}});
}

/// The state of this host that every mapping is checked against, read once.
struct HostState {
  commands::DomainSurvey survey;
  std::vector<Lease> leases;
  commands::HostReading host;

  explicit HostState(Session& session)
      : survey(surveyDomains(session)),
        leases(session.readLeases()),
        host(readHostForAll(session, leases)) {}
};

// Checks a mapping whose file has no mistakes against this host.
void checkAgainstHost(Session& session, const Mapping& mapping, const HostState& state,
                      report::CheckEntry& entry, std::vector<ExitCode>& codes) {
  try {
    const DomainDescription* domain = state.survey.find(mapping.vm);
    commands::Subject subject =
        domain != nullptr ? findSubject(session, *domain) : findSubject(session, mapping.vm);
    settleNear(session, subject, state.leases);
    const auto input = attachInput(session, subject, state.survey, state.leases,
                                   commands::scopeFor(subject.domain, {}), state.host);
    auto decision = plan::planAttach(input);
    std::ranges::move(checkVfSpace(session, decision.plan),
                      std::back_inserter(decision.objections));
    entry.facts = plan::describeDevices(input);
    for (const auto& objection : decision.objections) {
      entry.objections.push_back(objection.message +
                                 (objection.remedy.empty() ? "" : "; " + objection.remedy));
      codes.push_back(objection.code);
    }
    entry.pendingSteps = decision.plan.steps.size();
  } catch (const Error& error) {
    entry.objections.push_back(commands::withRemedy(error));
    codes.push_back(error.code());
  }
}

// Also without libvirt: a file with mistakes needs none.
std::string fileOf(Session& session, const std::string& vm) {
  if (const Mapping* mapping = config::findMapping(session.configuration(), vm, vm)) {
    return mapping->file;
  }
  return findSubject(session, vm).mapping.file;
}

// What mappings are compared with; nullopt without libvirt, after the reason has been printed.
std::optional<HostState> readHostState(Session& session, std::vector<ExitCode>& codes) {
  try {
    return std::make_optional<HostState>(session);
  } catch (const Error& error) {
    codes.push_back(session.fail(error));
    return std::nullopt;
  }
}

ExitCode exitCodeFor(const std::vector<report::CheckEntry>& entries,
                     const std::vector<ExitCode>& codes) {
  const auto any = [&](const auto& test) {
    return std::any_of(entries.begin(), entries.end(), test);
  };
  if (any([](const auto& entry) { return !entry.problems.empty(); })) {
    return ExitCode::badInput;
  }
  for (const ExitCode code : {ExitCode::badInput, ExitCode::refused, ExitCode::failed}) {
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) {
      return code;
    }
  }
  return ExitCode::done;
}

bool isMapped(Session& session, const std::string& vm) {
  const auto& mappings = session.configuration().mappings;
  return std::ranges::find(mappings, vm, &Mapping::vm) != mappings.end();
}

// A VM may be called `x.yaml`, too: `init` and `import` name it in their next commands.
bool isFile(Session& session, const std::string& target) {
  std::error_code ignored;
  return target.find('/') != std::string::npos ||
         (target.ends_with(".yaml") &&
          (std::filesystem::exists(target, ignored) || !isMapped(session, target)));
}

// `check FILE` needs neither libvirt nor the installed configuration, so that it works in an
// editor.
ExitCode checkFile(Session& session, const std::string& file) {
  auto [isHostPolicy, mappings, problems] = config::loadFile(file);
  const auto crossed = config::crossCheck(mappings);
  problems.insert(problems.end(), crossed.begin(), crossed.end());
  std::vector<report::CheckEntry> entries;
  for (const auto& mapping : mappings) {
    entries.push_back({mapping.vm, mapping.file, {}, {}, {}, {}});
  }
  if (isHostPolicy) {
    entries.push_back({"", file, {}, {}, {}, {}, true});
  }
  for (const auto& problem : problems) {
    addProblem(problem, entries);
  }
  report::writeCheck(session.pagedOut(), entries, file, session.style());
  return exitCodeFor(entries, {});
}

// A host.yaml without mistakes; those of one with mistakes are among the problems.
void addHostPolicy(Session& session, const std::string& vm,
                   const std::vector<config::Problem>& problems,
                   std::vector<report::CheckEntry>& entries) {
  const std::string file = (session.options().configDirectory / "host.yaml").string();
  std::error_code ignored;
  if (vm.empty() && std::filesystem::exists(file, ignored) &&
      std::ranges::none_of(problems,
                           [&](const auto& problem) { return problem.place.file == file; })) {
    entries.push_back({"", file, {}, {}, {}, {}, true});
  }
}

ExitCode checkConfigured(Session& session, const std::string& vm) {
  const auto& configuration = session.configuration();
  std::vector<report::CheckEntry> entries;
  std::vector<ExitCode> codes;
  // Problems of single files, then conflicts between them.
  auto problems = configuration.problems;
  const auto crossed = config::crossCheck(configuration.mappings);
  problems.insert(problems.end(), crossed.begin(), crossed.end());
  const std::string requestedFile = vm.empty() ? "" : fileOf(session, vm);
  // Mappings without mistakes are also compared with the host, which is read only for these.
  std::optional<std::optional<HostState>> state;
  for (const auto& mapping : configuration.mappings) {
    if (!vm.empty() && mapping.file != requestedFile) {
      continue;
    }
    entries.push_back({mapping.vm, mapping.file, {}, {}, {}, {}});
    const bool sound = std::none_of(problems.begin(), problems.end(), [&](const auto& problem) {
      return problem.place.file == mapping.file;
    });
    if (sound) {
      if (!state) {
        state = readHostState(session, codes);
      }
      if (*state) {
        checkAgainstHost(session, mapping, **state, entries.back(), codes);
      }
    }
  }
  addHostPolicy(session, vm, problems, entries);
  // The problems, each below its file.
  for (const auto& problem : problems) {
    if (vm.empty() || problem.place.file == requestedFile) {
      addProblem(problem, entries);
    }
  }
  report::writeCheck(session.pagedOut(), entries,
                     (session.options().configDirectory / "vms/*.yaml").string(), session.style());
  return exitCodeFor(entries, codes);
}

ExitCode check(Session& session, const CheckOptions& options) {
  if (!options.schema.empty()) {
    if (!options.target.empty()) {
      throw Error("`vfpass check`: " + printable(options.target) + " excludes --schema",
                  "run `vfpass check --help`", ExitCode::badInput);
    }
    session.out() << (options.schema == "host" ? config::hostSchema() : config::mappingSchema());
    return ExitCode::done;
  }
  return isFile(session, options.target) ? checkFile(session, options.target)
                                         : checkConfigured(session, options.target);
}

}  // namespace

void addCheck(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "check", "Validate mappings against the schema and this host, and report all problems");
  const auto options = std::make_shared<CheckOptions>();
  command
      ->add_option("target", options->target,
                   "VM (name or UUID), or file to validate without looking at the host: a mapping\n"
                   "or a host.yaml (default: all VMs)")
      ->type_name("VM|FILE");
  command
      ->add_option("--schema", options->schema,
                   "Print the JSON schema of mappings, or with `host` that of host.yaml")
      ->type_name("SCHEMA")
      ->check(CLI::IsMember({"mapping", "host"}))
      ->expected(0, 1)
      ->default_str("mapping");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return check(session, *options); };
  });
}

}  // namespace vfpass::commands
