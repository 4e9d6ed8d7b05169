#include <algorithm>
#include <iterator>
#include <set>

#include "commands.hpp"
#include "host_facts.hpp"
#include "status_reader.hpp"
#include "subject.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/status_report.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

std::vector<Lease> leasesIn(const std::vector<report::StatusEntry>& entries) {
  std::vector<Lease> leases;
  std::ranges::transform(entries, std::back_inserter(leases), &report::StatusEntry::lease);
  return leases;
}

// The mappings of what the report shows. A mapping may name the VM by name, and the user by UUID,
// or the reverse: the leases know both, and libvirt if there are none.
std::vector<Mapping> mappingsOf(Session& session, const std::string& vm,
                                const std::vector<Lease>& leases) {
  std::vector<Mapping> mappings = session.configuration().mappings;
  std::erase_if(mappings, [&](const Mapping& mapping) {
    return !vm.empty() && mapping.vm != vm && std::ranges::none_of(leases, [&](const Lease& lease) {
      return commands::isLeaseOf(mapping.vm, lease);
    });
  });
  if (mappings.empty() && !vm.empty()) {
    if (const Mapping* mapping = findMappingFile(session, vm).mapping) {
      mappings.push_back(*mapping);
    }
  }
  return mappings;
}

// VMs with a mapping and no lease.
std::vector<std::string> notAttached(const std::vector<Mapping>& mappings,
                                     const std::vector<Lease>& leases) {
  std::vector<std::string> notes;
  for (const auto& name : commands::unattachedMappings(mappings, leases)) {
    notes.push_back("VM " + printable(name) + ": has a mapping, but is not attached");
  }
  return notes;
}

// The result of the last verification. The report is ours, but contains text from the guest. A
// report that cannot be read may be a failed one.
std::optional<std::string> lastVerification(Session& session, const Uuid& domain) {
  const auto kept = state::latestReport(session.options().stateDirectory, domain);
  if (!kept) {
    return std::nullopt;
  }
  const auto last = report::lastVerification(kept->text);
  const std::string problem = kept->problem.empty() ? "not a report" : kept->problem;
  return last ? *last
              : "unreadable: " + printable(kept->file.string()) + ": " + problem +
                    "; run `vfpass verify` again";
}

std::vector<std::string> verifications(Session& session, const std::vector<Lease>& leases) {
  const auto pending = commands::pendingVerifications(session, leases);
  std::vector<std::string> notes;
  std::set<Uuid> seen;
  for (const auto& lease : leases) {
    if (!seen.insert(lease.domain).second) {
      continue;
    }
    const std::string vm = "VM " + printable(lease.domainName) + ": ";
    if (const auto last = lastVerification(session, lease.domain)) {
      notes.push_back(vm + "last verification " + *last);
    }
    if (std::ranges::find(pending, lease.domain) != pending.end()) {
      notes.push_back(vm + "started, and its verification has not ended");
    }
  }
  return notes;
}

// Only for what the report shows: a host without leases and mappings needs none.
std::vector<std::string> services(Session& session, const std::vector<Mapping>& mappings,
                                  const report::StatusReport& report) {
  if (report.entries.empty() && report.notes.empty()) {
    return {};
  }
  return commands::missingServices(session, mappings);
}

ExitCode status(Session& session, const std::string& vm) {
  session.requireThisHost("status");
  std::optional<Error> unanswered;
  commands::StatusReader reader(session, &unanswered);
  report::StatusReport report;
  report.entries = reader.read(vm);
  report.peers = reader.readPeers();
  report.refused = reader.readRefused(vm);
  const auto leases = leasesIn(report.entries);
  const auto mappings = mappingsOf(session, vm, leases);
  const auto pending = notAttached(mappings, leases);
  if (!vm.empty() && report.entries.empty() && pending.empty() &&
      (unanswered || !session.hypervisor().findDomain(vm))) {
    commands::throwIfFaulty(session, vm, vm);
    if (unanswered) {
      throw *unanswered;
    }
    throw Error("no lease, mapping or domain with the name or UUID " + printable(vm),
                "run `vfpass status` to list them", ExitCode::badInput);
  }
  report.notes = pending;
  const auto verified = verifications(session, leases);
  report.notes.insert(report.notes.end(), verified.begin(), verified.end());
  const auto missing = services(session, mappings, report);
  report.notes.insert(report.notes.end(), missing.begin(), missing.end());
  if (unanswered) {
    report.notes.emplace_back(
        "libvirt did not answer: the leases are compared only with the kernel, and whether a "
        "domain "
        "runs is the last record");
  }
  report::writeStatus(session.pagedOut(), report, session.style());
  if (unanswered) {
    return session.fail(*unanswered);
  }
  const bool drift = std::any_of(report.entries.begin(), report.entries.end(),
                                 [](const auto& entry) { return !entry.drift.empty(); });
  return drift || !pending.empty() || !report.refused.empty() ? ExitCode::pending : ExitCode::done;
}

}  // namespace

void addStatus(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "status", "Show leases, and drift between mapping, kernel and domain (exit code 3)");
  struct Options {
    std::string vm;
    std::string watch;
  };
  const auto options = std::make_shared<Options>();
  command->add_option("vm", options->vm, "Domain name or UUID (default: all)")->type_name("VM");
  addWatch(*command, options->watch);
  command->callback([&runner, options] {
    runner = [options](Session& session) {
      return showOrWatch(session, options->watch,
                         [options](Session& each) { return status(each, options->vm); });
    };
  });
}

}  // namespace vfpass::commands
