#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "commands.hpp"
#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/guest_machine.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/report/status_report.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/session/drift.hpp"
#include "vfpass/session/guest_machine_of.hpp"
#include "vfpass/session/host_reading.hpp"
#include "vfpass/session/observe_peer_mapping.hpp"
#include "vfpass/session/settle_near.hpp"
#include "vfpass/session/subject.hpp"
#include "vfpass/state/report_history.hpp"
#include "vfpass/state/started_marks.hpp"

namespace vfpass::cli {
namespace {

bool matches(const std::string& vm, const Lease& lease) {
  const auto uuid = parseUuid(vm);
  return vm.empty() || lease.domainName == vm || (uuid && lease.domain == *uuid);
}

std::string withRemedy(const Error& error) {
  return std::string(error.what()) + (error.remedy().empty() ? "" : "; " + error.remedy());
}

// Drift between the mapping and the leases, which keep the mapping's values at the last attach.
std::vector<std::string> mappingDrift(Session& session, const DomainDescription& domain,
                                      const session::DomainSurvey& survey,
                                      const std::vector<Lease>& leases,
                                      const session::HostReading& host) {
  try {
    session::Subject subject = findSubject(session, domain);
    settleNear(session, subject, leases);
    const Scope scope{domain.persistent, !domain.persistent && domain.active};
    const auto input = attachInput(session, subject, survey, leases, scope, host);
    const auto decision = plan::planAttach(input);
    std::vector<std::string> drift;
    for (const auto& line : plan::mappingDifferences(input, decision.leases)) {
      drift.push_back("mapping: " + line);
    }
    if (drift.empty()) {
      for (const auto& objection : decision.objections) {
        drift.push_back("mapping: " + objection.message);
      }
    }
    return drift;
  } catch (const Error& error) {
    return {"mapping: " + withRemedy(error)};
  }
}

class StatusReader {
 public:
  explicit StatusReader(Session& session)
      : session_(session),
        survey_(surveyDomains(session)),
        leases_(withCurrentNames(session.readLeases(), survey_)),
        bootId_(session.kernel().bootId()) {}

  std::vector<report::StatusEntry> read(const std::string& vm) {
    std::vector<report::StatusEntry> entries;
    for (const auto& lease : leases_) {
      if (matches(vm, lease)) {
        entries.push_back(entryFor(lease));
      }
    }
    return entries;
  }

  // Only of domains without a lease; for those with one it is drift. One entry per domain, with its
  // first fault.
  std::vector<report::RefusedMetadata> readRefused(const std::string& vm) {
    std::vector<report::RefusedMetadata> found;
    std::set<Uuid> seen;
    const state::Database database = session_.readDatabase();
    for (const auto& refused :
         apply::refusedMetadata(database, session_.kernel(), session_.sealKey(), survey_.managed)) {
      const bool asked = vm.empty() || vm == refused.domainName || vm == toString(refused.domain);
      if (asked && session::leasesOf(leases_, refused.domain).empty() &&
          seen.insert(refused.domain).second) {
        found.push_back({refused.domainName, refused.domain, refused.reason, remedyFor(refused)});
      }
    }
    for (const auto& stray : survey_.strays) {
      const bool asked = vm.empty() || vm == stray.name || vm == toString(stray.uuid);
      if (asked && session::leasesOf(leases_, stray.uuid).empty() &&
          seen.insert(stray.uuid).second) {
        const apply::RefusedMetadata refused{
            stray.uuid, stray.name, "it has devices attached by vfpass, but no vfpass metadata"};
        found.push_back({refused.domainName, refused.domain, refused.reason, remedyFor(refused)});
      }
    }
    return found;
  }

  // Of the domains that read() has looked up in libvirt.
  std::vector<PeerMapping> readPeers() {
    std::vector<PeerMapping> peers;
    for (const auto& [uuid, domain] : domains_) {
      if (const auto peer = domain
                                ? peerMappingOf(session_, *domain, session::leasesOf(leases_, uuid))
                                : std::nullopt) {
        peers.push_back(*peer);
      }
    }
    return peers;
  }

 private:
  // Read once for all leases, and not at all without any.
  const session::HostReading& host() {
    if (!host_) {
      host_ = readHostForAll(session_, leases_);
    }
    return *host_;
  }

  // A domain that was defined after the survey is asked for separately.
  std::optional<DomainDescription> find(const Uuid& uuid) {
    const DomainDescription* found = survey_.find(uuid);
    return found != nullptr ? std::optional(*found)
                            : session_.hypervisor().findDomain(toString(uuid));
  }

  std::string remedyFor(const apply::RefusedMetadata& refused) {
    const auto found = find(refused.domain);
    // By UUID if the name looks like an option.
    const std::string name = printable(shellQuoted(
        refused.domainName.starts_with('-') ? toString(refused.domain) : refused.domainName));
    const std::string attach = "run `vfpass attach " + name + "` if it has a mapping, otherwise ";
    if (!found || !found->active) {
      return attach + "`vfpass detach " + name + "`";
    }
    return attach + "`virsh metadata " + name + " --uri " + std::string(metadataNamespace) +
           " --remove " + (found->persistent ? "--config " : "") + "--live`";
  }

  report::StatusEntry entryFor(const Lease& lease) {
    auto& domain = domains_.try_emplace(lease.domain, std::nullopt).first->second;
    const bool first = !domain;
    if (first) {
      domain = find(lease.domain);
    }
    report::StatusEntry entry{lease, domain.has_value(), domain && domain->active, {}};
    if (domain) {
      entry.guestAddress = session::addressInGuest(
          domain::readGuestMachine(domain->active ? domain->liveXml : domain->persistentXml),
          lease);
    }
    entry.notObservable = session::unobservedAttributes(lease, host().inventory, bootId_);
    entry.drift = session::kernelDrift(lease, host().inventory, bootId_, entry.domainActive);
    if (const auto line = session::poolDrift(lease, host().inventory, survey_.pools);
        !line.empty()) {
      entry.drift.push_back(line);
    }
    if (first) {  // drift of the domain as a whole is reported once, with its first entry
      const auto own = session::leasesOf(leases_, lease.domain);
      append(session::domainDrift(domain ? &*domain : nullptr, own, session_.sealKey()),
             entry.drift);
      if (domain) {
        append(mappingDrift(session_, *domain, survey_, leases_, host()), entry.drift);
        if (const auto line = session::managedSaveDrift(*domain); !line.empty()) {
          entry.drift.push_back(line);
        }
      }
    }
    return entry;
  }

  static void append(const std::vector<std::string>& lines, std::vector<std::string>& target) {
    target.insert(target.end(), lines.begin(), lines.end());
  }

  Session& session_;
  session::DomainSurvey survey_;
  std::vector<Lease> leases_;
  std::optional<session::HostReading> host_;
  std::string bootId_;
  std::map<Uuid, std::optional<DomainDescription>> domains_;
};

// VMs with a mapping and no lease.
std::vector<std::string> notAttached(Session& session, const std::string& vm,
                                     const std::vector<report::StatusEntry>& entries) {
  std::vector<std::string> notes;
  for (const auto& mapping : session.configuration().mappings) {
    const bool asked = vm.empty() || mapping.vm == vm;
    const bool attached = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return matches(mapping.vm, entry.lease);
    });
    if (asked && !attached) {
      notes.push_back("VM " + printable(mapping.vm) + ": has a mapping, but is not attached");
    }
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

bool isVerifiedOnStart(Session& session, const Lease& lease) {
  const Mapping* mapping =
      config::findMapping(session.configuration(), lease.domainName, toString(lease.domain));
  return mapping != nullptr && mapping->verify.onStart;
}

std::vector<std::string> verifications(Session& session,
                                       const std::vector<report::StatusEntry>& entries) {
  std::set<Uuid> pending;
  for (const auto& mark : state::startedMarks(session.options().runDirectory)) {
    pending.insert(mark.domain);
  }
  std::vector<std::string> notes;
  std::set<Uuid> seen;
  for (const auto& entry : entries) {
    if (!seen.insert(entry.lease.domain).second) {
      continue;
    }
    const std::string vm = "VM " + printable(entry.lease.domainName) + ": ";
    if (const auto last = lastVerification(session, entry.lease.domain)) {
      notes.push_back(vm + "last verification " + *last);
    }
    if (pending.contains(entry.lease.domain) && isVerifiedOnStart(session, entry.lease)) {
      notes.push_back(vm + "started, and its verification has not ended");
    }
  }
  return notes;
}

ExitCode status(Session& session, const std::string& vm) {
  StatusReader reader(session);
  report::StatusReport report;
  report.entries = reader.read(vm);
  report.peers = reader.readPeers();
  report.refused = reader.readRefused(vm);
  const auto pending = notAttached(session, vm, report.entries);
  if (!vm.empty() && report.entries.empty() && pending.empty() &&
      !session.hypervisor().findDomain(vm)) {
    throw Error("no lease, mapping or domain with the name or UUID " + printable(vm),
                "run `vfpass status` to list them", ExitCode::badInput);
  }
  report.notes = pending;
  const auto verified = verifications(session, report.entries);
  report.notes.insert(report.notes.end(), verified.begin(), verified.end());
  report::writeStatus(session.out(), report, session.style());
  const bool drift = std::any_of(report.entries.begin(), report.entries.end(),
                                 [](const auto& entry) { return !entry.drift.empty(); });
  return drift || !pending.empty() || !report.refused.empty() ? ExitCode::pending : ExitCode::done;
}

}  // namespace

void addStatus(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "status", "Show leases, and drift between mapping, kernel and domain (exit status 3)");
  const auto vm = std::make_shared<std::string>();
  command->add_option("vm", *vm, "Domain name or UUID (default: all)")->type_name("VM");
  command->callback(
      [&runner, vm] { runner = [vm](Session& session) { return status(session, *vm); }; });
}

}  // namespace vfpass::cli
