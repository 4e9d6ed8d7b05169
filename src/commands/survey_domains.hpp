#pragma once

#include <map>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain_facts.hpp"

namespace vfpass::commands {

struct UnreadableDomain {
  Uuid uuid;
  std::string name;
  std::string reason;
  std::string remedy;
};

/// All domains and network pools of the host.
struct DomainSurvey {
  std::map<Uuid, DomainDescription> domains;
  std::vector<DomainSummary> summaries;
  /// Domains with vfpass metadata: the persistent XML, then the live one. Only isSealed()
  /// (domain_xml.hpp) tells whether this host wrote the metadata.
  std::vector<domain::ParsedDomain> managed;
  std::vector<Uuid> active;
  /// Domains with our devices but without metadata; the hook does not let them start.
  std::vector<DomainSummary> strays;
  /// Domains that libvirt cannot describe, or whose XML cannot be parsed: what they claim is
  /// unknown. Their leases and the kernel's holders still protect their devices.
  std::vector<UnreadableDomain> unreadable;
  std::vector<NetworkPool> pools;  ///< device pools of libvirt networks
  /// Domains and networks that may use further devices, for people: those that are unreadable, and
  /// domains whose arguments for QEMU cannot be read.
  std::vector<std::string> unknown;

  /// By name or UUID; a name takes precedence. Null when it was not there at the time of the
  /// survey.
  [[nodiscard]] const DomainDescription* find(const std::string& nameOrUuid) const;
  [[nodiscard]] const DomainDescription* find(const Uuid& uuid) const;
};

/// Reads every domain from libvirt; warns about those that cannot be read. The caller must hold
/// none of our locks: libvirt takes the lock of each domain, and a starting domain holds its own
/// while our hook waits for one of our locks.
DomainSurvey surveyDomains(Session& session);

/// The definitions in the survey, for planners.
Definitions definitionsOf(const DomainSurvey& survey);

/// Warns of VFs that vfpass created and that are still there after the leases `ended`, only because
/// a definition names them. `before`: all leases, those included.
void warnOfKeptVfs(Session& session, const std::vector<Lease>& ended,
                   const std::vector<Lease>& before, const DomainSurvey& survey);

/// The same leases with the current names of their domains, which may have been renamed.
std::vector<Lease> withCurrentNames(std::vector<Lease> leases, const DomainSurvey& survey);

}  // namespace vfpass::commands
