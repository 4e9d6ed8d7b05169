#include "survey_domains.hpp"

#include <algorithm>

#include "subject.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/plan_detach.hpp"

namespace vfpass::commands {
namespace {

// Once, although the persistent and the live XML may both be unknown.
void addUnknown(const std::string& name, DomainSurvey& survey) {
  if (std::ranges::find(survey.unknown, name) == survey.unknown.end()) {
    survey.unknown.push_back(name);
  }
}

// Whoever may edit one domain must not be able to stop commands for the others.
void addUnreadable(Session& session, const DomainDescription& domain, const Error& error,
                   DomainSurvey& survey) {
  survey.unreadable.push_back({domain.uuid, domain.name, error.what(), error.remedy()});
  addUnknown("domain " + printable(domain.name), survey);
  session.warn("domain " + printable(domain.name) +
               ": its devices are unknown: " + withRemedy(error));
}

std::optional<domain::ParsedDomain> parseQuietly(Session& session, const DomainDescription& domain,
                                                 const DomainXml& xml, DomainSurvey& survey) {
  try {
    auto parsed = domain::parseDomain(xml);
    if (const std::string doubt = domain::doubtAboutArguments(xml); !doubt.empty()) {
      session.warn("domain " + printable(domain.name) +
                   ": cannot tell which host devices its <qemu:commandline> uses: " + doubt);
      addUnknown("domain " + printable(domain.name), survey);
    }
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
    addUnknown("network " + printable(network.name), survey);
  }
}

DomainSurvey surveyOf(Session& session, const std::vector<DomainDescription>& domains,
                      const std::vector<NetworkDescription>& networks) {
  DomainSurvey survey;
  for (const auto& domain : domains) {
    surveyOne(session, domain, survey);
  }
  for (const auto& network : networks) {
    addPool(session, network, survey);
  }
  return survey;
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
  const auto domains = session.hypervisor().listDomains();
  return surveyOf(session, domains, session.hypervisor().listNetworks());
}

Definitions definitionsOf(const DomainSurvey& survey) {
  return {survey.summaries, survey.pools, survey.unknown};
}

void warnOfKeptVfs(Session& session, const std::vector<Lease>& ended,
                   const std::vector<Lease>& before, const DomainSurvey& survey) {
  std::vector<Lease> created = ended;
  std::erase_if(created, [](const Lease& lease) { return !lease.original.created; });
  if (created.empty()) {
    return;
  }
  // Read again: another domain may have been detached meanwhile, and the VFs be gone.
  const auto pfs = pfsOf(ended);
  Inventory inventory = session.inventory({}, pfs);
  session.addHolders(inventory, pfs);
  for (const auto& note : plan::notesOnKeptVfs(ended, before, inventory, definitionsOf(survey))) {
    session.warn(note);
  }
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

}  // namespace vfpass::commands
