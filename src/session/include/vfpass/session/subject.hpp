#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/claim.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/network_pool.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/session/command_session.hpp"

namespace vfpass::session {

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
  /// (seal.hpp) tells whether this host wrote the metadata.
  std::vector<domain::ParsedDomain> managed;
  std::vector<Uuid> active;
  /// Domains with our devices but without metadata; the hook does not let them start.
  std::vector<DomainSummary> strays;
  /// Domains that libvirt cannot describe, or whose XML cannot be parsed: what they claim is
  /// unknown. Their leases and the kernel's holders still protect their devices.
  std::vector<UnreadableDomain> unreadable;
  std::vector<NetworkPool> pools;  ///< device pools of libvirt networks

  /// By name or UUID; a name takes precedence. Null when it was not there at the time of the
  /// survey.
  [[nodiscard]] const DomainDescription* find(const std::string& nameOrUuid) const;
  [[nodiscard]] const DomainDescription* find(const Uuid& uuid) const;
};

/// Reads every domain from libvirt; warns about those that cannot be read. The caller must hold
/// none of our locks: libvirt takes the lock of each domain, and a starting domain holds its own
/// while our hook waits for one of our locks.
DomainSurvey surveyDomains(Session& session);

/// One VM with its mapping.
struct Subject {
  Mapping mapping;
  DomainDescription domain;
  std::vector<Mapping> otherMappings;
  std::map<std::string, plan::Objection> nearFaults;  ///< entries for which `near` finds no PF
  std::vector<std::string> nearReasons;               ///< why the other entries have their PFs
};

/// The domain `vm` (name or UUID) and its mapping. Throws with exit code 2 if either is missing, or
/// the mapping has mistakes or conflicts with another one.
Subject findSubject(Session& session, const std::string& vm);

/// The same for a domain that has been read already.
Subject findSubject(Session& session, const DomainDescription& domain);

/// `--live` and `--config`.
struct ScopeOptions {
  bool live = false;
  bool config = false;
};

/// Without an option: the persistent configuration if there is one, and the live configuration if
/// the domain is running. Throws (bad input) if the domain does not have the requested one.
Scope scopeFor(const DomainDescription& domain, const ScopeOptions& options);

struct HostReading;

/// The input of planAttach(). Settle `near` first (settle_near.hpp). If the plan is to run, take
/// the locks of pfsOf() before reading the host (host_reading.hpp) and calling this.
plan::AttachInput attachInput(Session& session, const Subject& subject, const DomainSurvey& survey,
                              const std::vector<Lease>& leases, const Scope& scope,
                              const HostReading& host);

/// The same leases with the current names of their domains, which may have been renamed.
std::vector<Lease> withCurrentNames(std::vector<Lease> leases, const DomainSurvey& survey);

/// The leases in the running domain's metadata. If that is not sealed, the leases in `leases` of
/// the devices that the domain has: a rollback seals what it restores, so the source must be
/// trusted.
std::vector<Lease> liveLeases(Session& session, const DomainDescription& domain,
                              const std::vector<Lease>& leases);

/// PFs and PCI functions that attaching this subject can change, to be locked by the caller.
std::vector<PciAddress> pfsOf(const Subject& subject, const Inventory& inventory,
                              const std::vector<Lease>& leases);

/// PFs and PCI functions of these leases.
std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases);

/// Leases of one domain.
std::vector<Lease> leasesOf(const std::vector<Lease>& leases, const Uuid& domain);

}  // namespace vfpass::session
