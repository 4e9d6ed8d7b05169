#include "attach_input.hpp"
#include "commands.hpp"
#include "saved_plan.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::commands {

namespace {

struct PlanOptions {
  std::string vm;
  commands::ScopeOptions scope;
  PlanOutput output;
};

void addOutput(CLI::App& command, std::string& file) {
  command.add_option("--output,--out", file, "Also save the plan in this file, for --plan")
      ->type_name("FILE");
}

// The persistent XML after the plan; nullopt if the plan does not change it.
std::optional<std::string> plannedXml(const std::string& xml, const Plan& plan,
                                      const SealKey& key) {
  for (const auto& step : plan.steps) {
    if (const auto* edit = std::get_if<EditDomain>(&step.action)) {
      return domain::withLeases(xml, edit->leases, domain::builtInTemplates(), key);
    }
  }
  return std::nullopt;
}

report::PlanDistances distancesOf(const std::string& before, const std::string& after,
                                  const std::vector<Lease>& leases, const Topology& host) {
  const auto machine = [&leases](const std::string& xml) {
    return topology::withPfs(domain::readGuestMachine(xml), leases);
  };
  return {topology::hostMatrix(machine(after), host), topology::guestMatrix(machine(before), host),
          topology::guestMatrix(machine(after), host)};
}

}  // namespace

report::PlanText textOf(const PlanOutput& output, const std::string& command, const std::string& vm,
                        const ScopeOptions& scope) {
  const std::string saved = output.file.empty() ? "" : " --plan " + shellArgument(output.file);
  return {"vfpass " + command + " " + shellArgument(vm) + (scope.live ? " --live" : "") +
              (scope.config ? " --config" : "") + saved,
          !output.noXml};
}

ExitCode showPlan(Session& session, const std::string& vm, const commands::ScopeOptions& options,
                  const PlanOutput& output) {
  commands::Subject subject = findSubject(session, vm);
  const Scope scope = scopeFor(subject.domain, options);
  const commands::DomainSurvey survey = surveyDomains(session);
  const auto leases = session.readLeases();
  settleNear(session, subject, leases);
  const auto input =
      attachInput(session, subject, survey, leases, scope, readHostFor(session, subject, leases));
  const auto decision = plan::decideAttach(input);
  plan::throwObjections("cannot attach to domain " + printable(subject.domain.name),
                        checkVfSpace(session, decision.plan));
  for (const auto& reason : subject.nearReasons) {
    session.note(reason);
  }
  const std::string& before = subject.domain.persistentXml;
  const auto after = plannedXml(before, decision.plan, session.sealKey());
  if (!output.file.empty()) {
    commands::writeSavedPlan(output.file,
                             commands::planToSave("attach", decision.plan, scope, before));
  }
  report::writePlan(session.pagedOut(), decision.plan, after ? domain::xmlDiff(before, *after) : "",
                    session.style(),
                    after && input.machine
                        ? distancesOf(before, *after, decision.leases, input.topology)
                        : report::PlanDistances{},
                    commands::settingsToShow(input, decision, after.value_or(before)),
                    textOf(output, "attach", vm, options));
  return decision.plan.steps.empty() ? ExitCode::done : ExitCode::pending;
}

void addScope(CLI::App& command, commands::ScopeOptions& scope) {
  command.add_flag("--live", scope.live, "Affect only the running domain");
  command.add_flag("--config", scope.config,
                   "Affect only the persistent configuration, which the next start uses");
}

void addNoXml(CLI::App& command, bool& noXml) {
  command.add_flag("--no-xml", noXml, "Omit the changes to the domain's XML from the text");
}

void addSavedPlanOptions(CLI::App& command, bool& dryRun, std::string& output, std::string& plan) {
  auto* dry = command.add_flag("--dry-run", dryRun, "Only show the changes");
  addOutput(command, output);
  command.get_option("--output")->needs(dry);
  command
      .add_option("--plan", plan,
                  "Execute this saved plan; refuse if the state has changed since (exit code 5)")
      ->type_name("FILE")
      ->excludes(dry);
}

void addPlan(CLI::App& app, Runner& runner) {
  auto* command =
      app.add_subcommand("plan", "Show what attach would change: host steps and an XML diff");
  const auto options = std::make_shared<PlanOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM")->required();
  addScope(*command, options->scope);
  addOutput(*command, options->output.file);
  addNoXml(*command, options->output.noXml);
  command->callback([&runner, options] {
    runner = [options](Session& session) {
      return showPlan(session, options->vm, options->scope, options->output);
    };
  });
}

}  // namespace vfpass::commands
