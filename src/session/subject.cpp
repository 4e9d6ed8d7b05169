#include "vfpass/session/subject.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/guest_machine.hpp"
#include "vfpass/domain/network_xml.hpp"
#include "vfpass/domain/seal.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/session/add_settings.hpp"
#include "vfpass/session/host_reading.hpp"
#include "vfpass/session/renamed_domain.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::session {
namespace {

// Whoever may edit one domain must not be able to stop commands for the others.
void addUnreadable(Session& session, const DomainDescription& domain, const Error& error,
                   DomainSurvey& survey) {
  survey.unreadable.push_back({domain.uuid, domain.name, error.what(), error.remedy()});
  session.warn("domain " + printable(domain.name) +
               ": its devices are unknown: " + withRemedy(error));
}

std::optional<domain::ParsedDomain> parseQuietly(Session& session, const DomainDescription& domain,
                                                 const DomainXml& xml, DomainSurvey& survey) {
  try {
    auto parsed = domain::parseDomain(xml);
    try {
      domain::requireKnownClaims(parsed);
    } catch (const Error& error) {  // the other claims count
      addUnreadable(session, domain, error, survey);
    }
    return parsed;
  } catch (const Error& error) {
    addUnreadable(session, domain, error, survey);
    return std::nullopt;
  }
}

// MACs in unsealed metadata are ignored: anybody could have written them.
void addClaims(const domain::ParsedDomain& parsed, const SealKey& key, DomainSummary& summary) {
  summary.claims.insert(summary.claims.end(), parsed.claims.begin(), parsed.claims.end());
  summary.macAddresses.insert(summary.macAddresses.end(), parsed.macAddresses.begin(),
                              parsed.macAddresses.end());
  if (!domain::isSealed(parsed, key)) {
    return;
  }
  for (const auto& lease : parsed.leases) {
    if (const auto mac = settingsOf(lease).mac) {
      summary.macAddresses.push_back(*mac);
    }
  }
}

void surveyOne(Session& session, const DomainDescription& domain, DomainSurvey& survey) {
  DomainSummary summary{domain.uuid, domain.name, domain.active, domain.persistent, {}, {}, {}};
  bool stray = false;
  const auto parse = [&](const DomainXml& xml) {
    const auto parsed = xml.empty() ? std::nullopt : parseQuietly(session, domain, xml, survey);
    if (parsed) {
      addClaims(*parsed, session.sealKey(), summary);
    }
    if (parsed && parsed->managed) {
      survey.managed.push_back(*parsed);
    }
    stray |= parsed && !parsed->managed && domain::hasOurDevices(*parsed);
    return parsed ? parsed->claims : std::vector<Claim>();
  };
  parse(domain.persistentXml);
  summary.liveClaims = parse(domain.liveXml);
  if (domain.active) {
    survey.active.push_back(domain.uuid);
  }
  if (stray) {
    survey.strays.push_back(summary);
  }
  survey.summaries.push_back(std::move(summary));
  survey.domains.emplace(domain.uuid, domain);
}

void addPool(Session& session, const NetworkDescription& network, DomainSurvey& survey) {
  try {
    survey.pools.push_back(domain::readNetworkPool(network.xml));
  } catch (const Error& error) {
    session.warn("network " + printable(network.name) +
                 ": its devices are unknown: " + withRemedy(error));
  }
}

[[noreturn]] void throwProblems(const std::string& subject,
                                const std::vector<config::Problem>& problems) {
  std::vector<std::string> lines;
  for (const auto& problem : problems) {
    lines.push_back(toString(problem));
  }
  throw Error(subject + ":\n  " + join(lines, "\n  "), mistakesOf(problems),
              "run `vfpass check` to list the problems of all files");
}

// Throws for problems of this VM's configuration; warns about those of other VMs.
void throwOwnProblems(Session& session, const Mapping& mapping) {
  std::vector<config::Problem> ours;
  for (const auto& problem : session.configurationProblems()) {
    const bool concerns = problem.place.file == mapping.file ||
                          problem.message.find(mapping.file) != std::string::npos ||
                          problem.place.file.ends_with("/host.yaml");
    if (concerns) {
      ours.push_back(problem);
    } else {
      session.warn(toString(problem));
    }
  }
  if (!ours.empty()) {
    throwProblems("invalid configuration of VM " + printable(mapping.vm), ours);
  }
}

[[noreturn]] void throwNoMapping(Session& session, const std::string& vm) {
  const auto& configuration = session.configuration();
  const std::string message = "no mapping for VM " + printable(vm) + " in " +
                              (session.options().configDirectory / "vms").string() + "/*.yaml";
  if (!configuration.problems.empty()) {
    throwProblems(message + "; ignored files with mistakes", configuration.problems);
  }
  throw Error(message, "write one with `vm: " + printable(vm) + "` (see examples/)",
              ExitCode::badInput);
}

Subject withOthers(Session& session, const Mapping& mapping, const DomainDescription& domain) {
  Subject subject{mapping, domain, {}, {}, {}};
  const auto& all = session.configuration().mappings;
  std::copy_if(all.begin(), all.end(), std::back_inserter(subject.otherMappings),
               [&](const Mapping& each) { return each.file != mapping.file; });
  return subject;
}

// `mapping` is the one that names the domain as the user did, or null.
Subject subjectOf(Session& session, const DomainDescription& domain, const Mapping* mapping) {
  if (mapping == nullptr) {
    mapping = config::findMapping(session.configuration(), domain.name, toString(domain.uuid));
  }
  if (mapping == nullptr) {
    throwIfRenamed(session, domain);
    throwNoMapping(session, domain.name);
  }
  throwOwnProblems(session, *mapping);
  return withOthers(session, *mapping, domain);
}

void addLiveState(Session& session, const DomainDescription& domain, const std::vector<Lease>& own,
                  plan::AttachInput& input) {
  const std::string& liveXml = domain.liveXml.text();
  input.plugged = domain::devicesOfOurs(liveXml);
  input.liveLeases = liveLeases(session, domain, own);
  input.liveCurrent = domain::sealFault(domain::parseDomain(liveXml), session.sealKey()).empty();
  for (const auto& lease : own) {
    if (domain::fitsRunning(liveXml, lease.guest)) {
      input.pluggable.insert(lease.entry);
    }
  }
}

// Adds our devices in the domain, and its free slots.
void addDomainState(Session& session, const Subject& subject, plan::AttachInput& input) {
  const auto own = leasesOf(input.leases, input.domain);
  const auto& [persistentXml, liveXml] =
      std::tie(subject.domain.persistentXml, subject.domain.liveXml);
  if (input.active) {
    addLiveState(session, subject.domain, own, input);
  }
  const auto parsed = domain::parseDomain(input.scope.live ? liveXml : persistentXml);
  domain::requireKnownClaims(parsed);
  input.interfaces = parsed.interfaces;
  if (input.scope.live) {
    input.placements = domain::placeInRunning(liveXml, input.scope.config ? persistentXml : "");
  } else {
    const bool flat = input.mapping.topology == "flat";
    const auto isFresh = [&](const auto& entry) {
      return std::none_of(own.begin(), own.end(), [&](const Lease& lease) {
        return lease.entry == entry.name && !(flat && lease.guest.isMirrored());
      });
    };
    const auto& [vfs, gpus] = std::tie(subject.mapping.vfs, subject.mapping.functions);
    const auto fresh = std::count_if(vfs.begin(), vfs.end(), isFresh) +
                       std::count_if(gpus.begin(), gpus.end(), isFresh);
    // A mirrored tree assigns its own addresses.
    if (flat || !domain::readGuestMachine(persistentXml).pciExpress()) {
      input.placements = domain::placeDevices(persistentXml, static_cast<std::size_t>(fresh));
    }
  }
  if (input.mapping.topology == "mirror") {
    input.machine =
        domain::withoutOurs(domain::readGuestMachine(input.scope.config ? persistentXml : liveXml));
  }
  std::vector<Lease> persistent;
  std::copy_if(own.begin(), own.end(), std::back_inserter(persistent),
               [](const Lease& lease) { return lease.persistent; });
  input.xmlCurrent =
      persistentXml.empty() || domain::carriesLeases(persistentXml, persistent, session.sealKey());
}

}  // namespace

const DomainDescription* DomainSurvey::find(const std::string& nameOrUuid) const {
  for (const auto& [uuid, domain] : domains) {
    if (domain.name == nameOrUuid) {
      return &domain;
    }
  }
  const auto uuid = parseUuid(nameOrUuid);
  return uuid ? find(*uuid) : nullptr;
}

const DomainDescription* DomainSurvey::find(const Uuid& uuid) const {
  const auto found = domains.find(uuid);
  return found == domains.end() ? nullptr : &found->second;
}

DomainSurvey surveyDomains(Session& session) {
  DomainSurvey survey;
  for (const auto& domain : session.hypervisor().listDomains()) {
    surveyOne(session, domain, survey);
  }
  for (const auto& network : session.hypervisor().listNetworks()) {
    addPool(session, network, survey);
  }
  return survey;
}

Subject findSubject(Session& session, const std::string& vm) {
  const Mapping* mapping = config::findMapping(session.configuration(), vm, vm);
  const auto found = session.hypervisor().findDomain(vm);
  if (found) {
    return subjectOf(session, *found, mapping);
  }
  if (mapping == nullptr) {
    throwNoMapping(session, vm);
  }
  throwOwnProblems(session, *mapping);
  const auto domain = session.hypervisor().findDomain(mapping->vm);
  if (!domain) {
    throwIfRenamed(session, *mapping);
    throw Error(toString(mapping->vmPlace) + ": libvirt has no domain " + printable(mapping->vm),
                "run `virsh list --all` to list the domains", ExitCode::badInput);
  }
  return withOthers(session, *mapping, *domain);
}

Subject findSubject(Session& session, const DomainDescription& domain) {
  return subjectOf(session, domain, nullptr);
}

std::vector<Lease> leasesOf(const std::vector<Lease>& leases, const Uuid& domain) {
  std::vector<Lease> own;
  std::copy_if(leases.begin(), leases.end(), std::back_inserter(own),
               [&](const Lease& lease) { return lease.domain == domain; });
  return own;
}

Scope scopeFor(const DomainDescription& domain, const ScopeOptions& options) {
  const std::string name = "domain " + printable(domain.name);
  if (options.config && !domain.persistent) {
    throw Error(name + " is transient and has no persistent configuration",
                "omit --config, or define the domain first (`virsh define`)", ExitCode::badInput);
  }
  if (options.live && !domain.active) {
    throw Error(name + " is not running", "omit --live, or start the domain first",
                ExitCode::badInput);
  }
  if (options.live == options.config) {  // neither or both
    return {domain.persistent, domain.active};
  }
  return {options.config, options.live};
}

plan::AttachInput attachInput(Session& session, const Subject& subject, const DomainSurvey& survey,
                              const std::vector<Lease>& leases, const Scope& scope,
                              const HostReading& host) {
  plan::AttachInput input;
  input.mapping = subject.mapping;
  input.nearFaults = subject.nearFaults;
  input.policy = session.configuration().host;
  input.inventory = host.inventory;
  input.domain = subject.domain.uuid;
  input.domainName = subject.domain.name;
  input.active = subject.domain.active;
  input.scope = scope;
  input.leases = withCurrentNames(leases, survey);
  input.domains = survey.summaries;
  input.pools = survey.pools;
  input.otherMappings = subject.otherMappings;
  // A captured tree has no boot ID; plans for it never run.
  input.bootId = session.options().sysroot == "/" ? session.kernel().bootId() : "";
  input.topology = host.topology;
  input.versions = host.versions;
  addDomainState(session, subject, input);
  addSettings(session, subject, input);
  return input;
}

std::vector<Lease> withCurrentNames(std::vector<Lease> leases, const DomainSurvey& survey) {
  std::map<Uuid, std::string> names;
  for (const auto& domain : survey.summaries) {
    names.emplace(domain.uuid, domain.name);
  }
  for (auto& lease : leases) {
    if (const auto name = names.find(lease.domain); name != names.end()) {
      lease.domainName = name->second;
    }
  }
  return leases;
}

std::vector<Lease> liveLeases(Session& session, const DomainDescription& domain,
                              const std::vector<Lease>& leases) {
  const auto parsed = domain::parseDomain(domain.liveXml);
  if (domain::isSealed(parsed, session.sealKey())) {
    return parsed.leases;
  }
  const auto plugged = domain::devicesOfOurs(domain.liveXml);
  std::vector<Lease> found = leasesOf(leases, domain.uuid);
  std::erase_if(found, [&](const Lease& lease) { return !plugged.contains(lease.entry); });
  return found;
}

std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases) {
  std::vector<PciAddress> pfs;
  std::ranges::transform(leases, std::back_inserter(pfs), &Lease::pf);
  return pfs;
}

std::vector<PciAddress> pfsOf(const Subject& subject, const Inventory& inventory,
                              const std::vector<Lease>& leases) {
  std::set<PciAddress> pfs;
  std::vector<plan::Objection> raisedLater;
  for (const auto& entry : subject.mapping.vfs) {
    const auto* pf = plan::selectPf(entry.pf, subject.mapping, inventory, entry.place, raisedLater);
    if (pf != nullptr) {
      pfs.insert(pf->address);
    }
  }
  for (const auto& gpu : subject.mapping.functions) {
    pfs.insert(gpu.pci);
  }
  for (const auto& lease : leasesOf(leases, subject.domain.uuid)) {
    pfs.insert(lease.pf);
  }
  return {pfs.begin(), pfs.end()};
}

}  // namespace vfpass::session
