#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attach_input.hpp"
#include "commands.hpp"
#include "host_facts.hpp"
#include "status_reader.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

using report::DiagnosedItem;
using report::Rank;

/// Collects what the commands about one VM report. A part that cannot be read is an item of its
/// own, and does not hide the others.
class VmDiagnosis {
 public:
  VmDiagnosis(Session& session, const std::string& vm)
      : session_(session), argument_(shellArgument(vm)), report_{vm, {}} {}

  report::DiagnoseReport collect() {
    attempt("vfpass doctor --vm " + argument_, [this] { addHost(); });
    attempt("vfpass status " + argument_, [this] { addServices(); });
    attempt("vfpass status " + argument_, [this] { addLeases(); });
    attempt("vfpass plan " + argument_, [this] { addSettings(); });
    attempt("vfpass verify " + argument_, [this] { addVerification(); });
    return std::move(report_);
  }

 private:
  template <typename Read>
  void attempt(const std::string& source, Read read) {
    source_ = source;
    try {
      read();
    } catch (const Error& error) {
      add(Rank::unseen, "", error.what(), error.remedy());
    }
  }

  // The same reason, such as a libvirt that does not answer, once.
  void add(Rank rank, const std::string& subject, const std::string& what,
           const std::string& remedy) {
    const bool known = std::ranges::any_of(report_.items, [&](const DiagnosedItem& item) {
      return item.rank == rank && item.subject == subject && item.what == what;
    });
    if (!known) {
      report_.items.push_back({rank, source_, subject, what, remedy});
    }
  }

  void addHost() {
    for (const Diagnosis& each : diagnosesOfVm(session_, report_.vm)) {
      const Finding& finding = each.finding;
      const bool warned = finding.outcome == Outcome::warning && !isAccepted(each);
      if (isFailure(each) || warned) {
        add(warned ? Rank::warning : Rank::problem,
            finding.key + (finding.subject.empty() ? "" : ", " + finding.subject),
            finding.seen + ", expected " + finding.expected, finding.remedy);
      }
    }
  }

  void addServices() {
    mapping_ = mappingNamedBy(session_, report_.vm);
    for (const std::string& line :
         missingServices(session_, mapping_ == nullptr ? std::vector<Mapping>{}
                                                       : std::vector<Mapping>{*mapping_})) {
      add(Rank::problem, "", line, "");
    }
  }

  void addLeases() {
    std::optional<Error> unanswered;
    StatusReader reader(session_, &unanswered);
    if (unanswered) {
      add(Rank::unseen, "", unanswered->what(), unanswered->remedy());
    }
    for (const report::StatusEntry& entry : reader.read(report_.vm)) {
      leases_.push_back(entry.lease);
      for (const std::string& line : entry.drift) {
        add(Rank::problem, entry.lease.entry, line,
            "run `vfpass plan " + argument_ + "` to see what attach would change");
      }
    }
    for (const report::RefusedMetadata& refused : reader.readRefused(report_.vm)) {
      add(Rank::problem, "metadata", refused.reason, refused.remedy);
    }
    if (mapping_ != nullptr && !unattachedMappings({*mapping_}, leases_).empty()) {
      add(Rank::problem, "", "the VM has a mapping, but is not attached",
          "run `vfpass attach " + argument_ + "`");
    }
  }

  void addSettings() {
    Subject subject = findSubject(session_, report_.vm);
    const DomainSurvey survey = surveyDomains(session_);
    const auto leases = session_.readLeases();
    settleNear(session_, subject, leases);
    const auto input = attachInput(session_, subject, survey, leases, scopeFor(subject.domain, {}),
                                   readHostFor(session_, subject, leases));
    for (const DomainSetting& setting : plan::planAttach(input).settings) {
      if (!plan::isApplied(input.mapping, setting)) {
        add(Rank::warning, setting.name, "domain setting not applied: " + setting.what,
            "run `vfpass plan " + argument_ + "` for the reason and the XML");
      }
    }
  }

  void addVerification() {
    if (leases_.empty()) {
      return;
    }
    const std::string again = "run `vfpass verify " + argument_ + "`";
    const auto kept =
        state::latestReport(session_.options().stateDirectory, leases_.front().domain);
    if (!kept) {
      add(Rank::warning, "", "the VM was never verified", again);
      return;
    }
    const auto past = report::readPastVerification(kept->text);
    const std::string problem = kept->problem.empty() ? past.problem : kept->problem;
    if (past.result != "passed") {
      add(past.result == "failed" ? Rank::problem : Rank::unseen, problem,
          "the verification of " + (past.time.empty() ? "unknown time" : past.time) + " has " +
              (past.result == "failed" ? "failed" : "not observed everything"),
          again);
    }
    if (!pendingVerifications(session_, leases_).empty()) {
      add(Rank::unseen, "", "the VM started, and its verification has not ended", again);
    }
  }

  Session& session_;
  std::string argument_;
  std::string source_;
  const Mapping* mapping_ = nullptr;
  std::vector<Lease> leases_;
  report::DiagnoseReport report_;
};

// A reason why that cannot be told is part of the diagnosis.
bool isKnown(Session& session, const std::string& vm) {
  try {
    const auto leases = session.readLeases();
    return std::ranges::any_of(leases, [&](const Lease& lease) { return isLeaseOf(vm, lease); }) ||
           config::findMapping(session.configuration(), vm, vm) != nullptr ||
           session.hypervisor().findDomain(vm).has_value();
  } catch (const Error&) {
    return true;
  }
}

ExitCode diagnoseVm(Session& session, const std::string& vm) {
  session.requireThisHost("diagnose");
  if (!isKnown(session, vm)) {
    throwNoMapping(session, vm, vm);
  }
  const auto report = VmDiagnosis(session, vm).collect();
  const bool clean = std::ranges::all_of(
      report.items, [](const DiagnosedItem& item) { return item.rank == Rank::warning; });
  report::writeDiagnose(session.out(), report, session.style());
  return clean ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void addDiagnose(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "diagnose",
      "Collect the problems of a VM from doctor, status, plan and its last verification,\n"
      "first the one to resolve first");
  const auto vm = std::make_shared<std::string>();
  command->add_option("vm", *vm, "Domain name or UUID")->type_name("VM")->required();
  command->callback(
      [&runner, vm] { runner = [vm](Session& session) { return diagnoseVm(session, *vm); }; });
}

}  // namespace vfpass::commands
