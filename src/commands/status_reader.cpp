#include "status_reader.hpp"

#include <algorithm>
#include <set>

#include "drift.hpp"
#include "guest_devices.hpp"
#include "subject.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

// Drift between the mapping and the leases, which keep the mapping's values at the last attach.
std::vector<std::string> mappingDrift(Session& session, const DomainDescription& domain,
                                      const DomainSurvey& survey, const std::vector<Lease>& leases,
                                      const HostReading& host) {
  try {
    Subject subject = findSubject(session, domain);
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

std::optional<PciAddress> guestAddressOf(const DomainDescription& domain, const Lease& lease) {
  try {
    return addressInGuest(
        domain::readGuestMachine(domain.active ? domain.liveXml : domain.persistentXml), lease);
  } catch (const Error&) {  // an unreadable domain is drift
    return std::nullopt;
  }
}

void append(const std::vector<std::string>& lines, std::vector<std::string>& target) {
  target.insert(target.end(), lines.begin(), lines.end());
}

// Without `unanswered`, a libvirt that does not answer is an error.
DomainSurvey surveyIfAnswered(Session& session, std::optional<Error>* unanswered) {
  try {
    return surveyDomains(session);
  } catch (const Error& error) {
    if (unanswered == nullptr) {
      throw;
    }
    *unanswered = error;
    return {};
  }
}

bool isVerifiedOnStart(Session& session, const Lease& lease) {
  const Mapping* mapping =
      config::findMapping(session.configuration(), lease.domainName, toString(lease.domain));
  return mapping != nullptr && mapping->verify.onStart;
}

}  // namespace

bool isLeaseOf(const std::string& vm, const Lease& lease) {
  const auto uuid = parseUuid(vm);
  return vm.empty() || lease.domainName == vm || (uuid && lease.domain == *uuid);
}

StatusReader::StatusReader(Session& session, std::optional<Error>* unanswered)
    : session_(session),
      survey_(surveyIfAnswered(session, unanswered)),
      leases_(withCurrentNames(session.readLeases(), survey_)),
      bootId_(session.kernel().bootId()) {
  answered_ = unanswered == nullptr || !*unanswered;
}

std::vector<report::StatusEntry> StatusReader::read(const std::string& vm) {
  std::vector<report::StatusEntry> entries;
  for (const auto& lease : leases_) {
    if (isLeaseOf(vm, lease)) {
      entries.push_back(entryFor(lease));
    }
  }
  return entries;
}

std::vector<report::RefusedMetadata> StatusReader::readRefused(const std::string& vm) {
  std::vector<report::RefusedMetadata> found;
  std::set<Uuid> seen;
  const state::Database database = session_.readDatabase();
  const auto add = [&](const apply::RefusedMetadata& refused, const std::string& remedy) {
    const bool asked = vm.empty() || vm == refused.domainName || vm == toString(refused.domain);
    if (asked && leasesOf(leases_, refused.domain).empty() && seen.insert(refused.domain).second) {
      found.push_back({refused.domainName, refused.domain, refused.reason, remedy});
    }
  };
  for (const auto& refused :
       apply::refusedMetadata(database, session_.kernel(), session_.sealKey(), survey_.managed)) {
    add(refused, remedyFor(refused));
  }
  for (const auto& [uuid, name, reason, remedy] : survey_.unreadable) {
    add({uuid, name, reason}, remedy);
  }
  for (const auto& stray : survey_.strays) {
    const apply::RefusedMetadata refused{
        stray.uuid, stray.name, "it has devices attached by vfpass, but no vfpass metadata"};
    add(refused, remedyFor(refused));
  }
  return found;
}

std::vector<PeerMapping> StatusReader::readPeers() {
  std::vector<PeerMapping> peers;
  for (const auto& [uuid, domain] : domains_) {
    try {
      if (const auto peer =
              domain ? peerMappingOf(session_, *domain, leasesOf(leases_, uuid)) : std::nullopt) {
        peers.push_back(*peer);
      }
    } catch (const Error&) {  // an unreadable domain is drift of its leases
      continue;
    }
  }
  return peers;
}

// Read once for all leases, and not at all without any.
const HostReading& StatusReader::host() {
  if (!host_) {
    host_ = readHostForAll(session_, leases_);
  }
  return *host_;
}

// A domain that was defined after the survey is asked for separately.
std::optional<DomainDescription> StatusReader::find(const Uuid& uuid) {
  const DomainDescription* found = survey_.find(uuid);
  return found != nullptr ? std::optional(*found)
         : answered_      ? session_.hypervisor().findDomain(toString(uuid))
                          : std::nullopt;
}

std::string StatusReader::remedyFor(const apply::RefusedMetadata& refused) {
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

// Of the domain as a whole, so reported once, with its first entry. A domain that cannot be read
// must not prevent the report about the others.
std::vector<std::string> StatusReader::driftOf(const std::optional<DomainDescription>& domain,
                                               const Uuid& uuid) {
  try {
    auto drift =
        domainDrift(domain ? &*domain : nullptr, leasesOf(leases_, uuid), session_.sealKey());
    if (domain) {
      append(mappingDrift(session_, *domain, survey_, leases_, host()), drift);
      if (const auto line = managedSaveDrift(*domain); !line.empty()) {
        drift.push_back(line);
      }
    }
    return drift;
  } catch (const Error& error) {
    return {"domain: " + withRemedy(error)};
  }
}

report::StatusEntry StatusReader::entryFor(const Lease& lease) {
  auto& domain = domains_.try_emplace(lease.domain, std::nullopt).first->second;
  const bool first = !domain;
  if (first) {
    domain = find(lease.domain);
  }
  report::StatusEntry entry{lease, domain.has_value(), domain && domain->active, {}};
  if (!answered_) {  // the hook's record of starts and stops
    entry.domainExists = true;
    entry.domainActive = lease.state == LeaseState::running;
    entry.domainAnswered = false;
  }
  if (domain) {
    entry.guestAddress = guestAddressOf(*domain, lease);
  }
  entry.notObservable = unobservedAttributes(lease, host().inventory, bootId_);
  if (!entry.domainActive) {
    entry.setAtStart = attributesToSet(lease, host().inventory, bootId_);
  }
  if (const VirtualFunction* vf = findVf(host().inventory, lease)) {
    entry.representor = vf->representor;
  }
  entry.drift = kernelDrift(lease, host().inventory, bootId_, entry.domainActive);
  if (const auto line = poolDrift(lease, host().inventory, survey_.pools); !line.empty()) {
    entry.drift.push_back(line);
  }
  if (first && answered_) {
    append(driftOf(domain, lease.domain), entry.drift);
  }
  return entry;
}

std::vector<std::string> unattachedMappings(const std::vector<Mapping>& mappings,
                                            const std::vector<Lease>& leases) {
  std::vector<std::string> vms;
  for (const auto& mapping : mappings) {
    if (std::ranges::none_of(leases,
                             [&](const Lease& lease) { return isLeaseOf(mapping.vm, lease); })) {
      vms.push_back(mapping.vm);
    }
  }
  return vms;
}

std::vector<Uuid> pendingVerifications(Session& session, const std::vector<Lease>& leases) {
  std::set<Uuid> started;
  for (const auto& mark : state::startedMarks(session.options().runDirectory)) {
    started.insert(mark.domain);
  }
  std::vector<Uuid> pending;
  for (const Lease& lease : leases) {
    const bool runs = lease.state != LeaseState::reserved;
    if (runs && started.contains(lease.domain) && isVerifiedOnStart(session, lease)) {
      started.erase(lease.domain);
      pending.push_back(lease.domain);
    }
  }
  return pending;
}

}  // namespace vfpass::commands
