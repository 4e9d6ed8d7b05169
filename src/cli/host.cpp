#include <algorithm>

#include "apply_policy.hpp"
#include "apply_soft_roce.hpp"
#include "commands.hpp"
#include "host_settings.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/report/host_report.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {
namespace {

constexpr std::chrono::milliseconds lockPatience{150000};

struct ApplyOptions {
  bool dryRun = false;
  std::string only;  ///< `pfs`, `soft-roce`; empty: both
};

// Mistakes in mappings are the business of `check`; those in host.yaml end this command.
const HostPolicy& soundPolicy(Session& session) {
  const auto& configuration = session.configuration();
  std::vector<std::string> mistakes;
  for (const auto& problem : configuration.problems) {
    if (std::filesystem::path(problem.place.file).filename() == "host.yaml") {
      mistakes.push_back(toString(problem));
    }
  }
  if (!mistakes.empty()) {
    throw Error(join(mistakes, "\n        "), "correct host.yaml", ExitCode::badInput);
  }
  return configuration.host;
}

const PhysicalFunction* findPf(const PfPolicy& policy, const Inventory& inventory) {
  const HostPolicy alone{{}, {policy}};
  const auto found = std::find_if(inventory.pfs.begin(), inventory.pfs.end(), [&](const auto& pf) {
    return plan::policyOf(pf, alone) != nullptr;
  });
  return found == inventory.pfs.end() ? nullptr : &*found;
}

// The PF of an entry of host.yaml; throws when there is none, or another entry has it already.
const PhysicalFunction& pfOf(const PfPolicy& policy, const HostPolicy& all,
                             const Inventory& inventory) {
  const std::string subject = toString(policy.place) + ": PF " + printable(toString(policy.pf));
  const PhysicalFunction* pf = findPf(policy, inventory);
  if (pf == nullptr) {
    throw Error(subject + " is not on this host", "see `vfpass pf list`", ExitCode::badInput);
  }
  const PfPolicy* first = plan::policyOf(*pf, all);
  if (first != &policy) {
    throw Error(subject + " has an entry already, at " + toString(first->place),
                "make one entry of both", ExitCode::badInput);
  }
  return *pf;
}

std::string failureText(const Error& error) {
  return std::string(error.what()) + (error.remedy().empty() ? "" : "; " + error.remedy());
}

report::HostEntry failedEntry(const PfPolicy& policy, const Error& error) {
  report::HostEntry entry;
  entry.name = toString(policy.pf);
  entry.listed = true;
  entry.failures.push_back(failureText(error));
  return entry;
}

// Every PF of the host, then the entries of host.yaml that no PF answers to.
std::vector<report::HostEntry> describePfs(Session& session, const HostPolicy& policy) {
  const Inventory inventory = session.inventory();
  std::vector<report::HostEntry> entries;
  for (const auto& pf : inventory.pfs) {
    entries.push_back(describePf(session, pf, plan::policyOf(pf, policy)));
  }
  for (const auto& entry : policy.pfs) {
    try {
      const PhysicalFunction& pf = pfOf(entry, policy, inventory);
      if (entry.serial && *entry.serial != pf.serial) {
        throw Error(toString(entry.place) + ": PF " + toString(pf.address) + " has serial number " +
                    (pf.serial.empty() ? "unknown" : printable(pf.serial)) + ", not " +
                    printable(*entry.serial));
      }
    } catch (const Error& error) {
      entries.push_back(failedEntry(entry, error));
    }
  }
  return entries;
}

ExitCode show(Session& session) {
  const HostPolicy& policy = soundPolicy(session);
  report::HostReport report{describePfs(session, policy), {}};
  SoftRoceRun softRoce(session, SoftRoceRun::Mode::show);
  softRoce.run();
  report.softRoce = softRoce.entries();
  report::writeHost(session.out(), report, session.style());
  const auto isPending = [](const auto& entry) { return entry.pending(); };
  const bool pending =
      std::ranges::any_of(report.pfs, isPending) || std::ranges::any_of(report.softRoce, isPending);
  return pending ? ExitCode::pending : ExitCode::done;
}

struct Outcome {
  report::HostEntry entry;
  ExitCode code = ExitCode::done;
};

// One PF; what fails here is told and does not keep the others from their turn.
Outcome applyEntry(Session& session, const PfPolicy& policy, const PciAddress& pf, bool dryRun) {
  PolicyRun run(session, policy, dryRun ? PolicyRun::Mode::look : PolicyRun::Mode::change);
  Outcome outcome;
  std::string failure;
  try {
    const auto locks = dryRun ? std::vector<state::FileLock>()
                              : state::lockPfs(session.options().runDirectory, {pf}, lockPatience);
    run.run(pf);
    outcome.code = dryRun && !run.actions().empty() ? ExitCode::pending : ExitCode::done;
  } catch (const Error& error) {
    failure = failureText(error);
    outcome.code = error.code();
  }
  outcome.entry = describePf(session, session.kernel().readPf(pf), &policy);
  outcome.entry.actions = run.actions();
  if (!failure.empty()) {
    outcome.entry.failures.push_back(failure);
  }
  return outcome;
}

Outcome applyPolicy(Session& session, const PfPolicy& policy, const HostPolicy& all,
                    const Inventory& inventory, bool dryRun) {
  try {
    return applyEntry(session, policy, pfOf(policy, all, inventory).address, dryRun);
  } catch (const Error& error) {
    return {failedEntry(policy, error), error.code()};
  }
}

ExitCode worst(const std::vector<ExitCode>& codes) {
  for (const ExitCode code :
       {ExitCode::badInput, ExitCode::refused, ExitCode::failed, ExitCode::pending}) {
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) {
      return code;
    }
  }
  return ExitCode::done;
}

void applyPfs(Session& session, const HostPolicy& policy, bool dryRun, report::HostReport& report,
              std::vector<ExitCode>& codes) {
  const Inventory inventory = policy.pfs.empty() ? Inventory{} : session.inventory();
  for (const auto& entry : policy.pfs) {
    Outcome outcome = applyPolicy(session, entry, policy, inventory, dryRun);
    report.pfs.push_back(std::move(outcome.entry));
    codes.push_back(outcome.code);
  }
}

void applySoftRoce(Session& session, bool dryRun, report::HostReport& report,
                   std::vector<ExitCode>& codes) {
  if (!session.configuration().softRoce.empty()) {
    session.note(
        "SoftRoCE is for tests: Red Hat has it as a technology preview and deprecates it in RHEL "
        "10, and its speed says nothing about RDMA in hardware");
  }
  SoftRoceRun run(session, dryRun ? SoftRoceRun::Mode::look : SoftRoceRun::Mode::change);
  try {
    run.run();
  } catch (const Error& error) {  // what was done to the PFs is told all the same
    session.warn("SoftRoCE links: " + failureText(error));
    codes.push_back(error.code());
  }
  report.softRoce = run.entries();
  codes.insert(codes.end(), run.codes().begin(), run.codes().end());
}

ExitCode apply(Session& session, const ApplyOptions& options) {
  if (!options.dryRun) {
    session.requireChangesPossible("host apply");
  }
  const HostPolicy& policy = soundPolicy(session);
  report::HostReport report;
  std::vector<ExitCode> codes;
  if (options.only != "soft-roce") {
    applyPfs(session, policy, options.dryRun, report, codes);
  }
  if (options.only != "pfs") {
    applySoftRoce(session, options.dryRun, report, codes);
  }
  const bool empty = report.pfs.empty() && report.softRoce.empty();
  if (empty) {
    session.note("host.yaml names no PFs and no SoftRoCE links: nothing to do");
  }
  if (!empty || session.style().json) {
    report::writeHost(session.out(), report, session.style());
  }
  return worst(codes);
}

}  // namespace

void addHost(CLI::App& app, Runner& runner) {
  auto* host = app.add_subcommand(
      "host", "settings of the PFs themselves, and SoftRoCE links, from host.yaml");
  host->require_subcommand(1);
  host->add_subcommand("show",
                       "what host.yaml wants of each PF and SoftRoCE link beside what is found")
      ->callback([&runner] { runner = show; });
  const auto options = std::make_shared<ApplyOptions>();
  auto* command = host->add_subcommand(
      "apply",
      "bring every PF of host.yaml to its settings, never taking a VF that is in use; make\n"
      "the SoftRoCE links of `soft-roce:` (RDMA in software, for tests on hosts without an\n"
      "HCA; deprecated in RHEL 10), and remove those that vfpass made and host.yaml names no\n"
      "more");
  command->add_flag("--dry-run", options->dryRun, "only say what would be done");
  command->add_option("--only", options->only, "one part of host.yaml: `pfs` or `soft-roce`")
      ->check(CLI::IsMember({"pfs", "soft-roce"}));
  command->callback([&runner, options] {
    runner = [options](Session& session) { return apply(session, *options); };
  });
}

}  // namespace vfpass::cli
