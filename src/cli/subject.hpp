#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"
#include "vfpass/claim.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/network_pool.hpp"
#include "vfpass/plan/attach.hpp"

namespace vfpass::cli {

/// All domains of the host, as far as vfpass looks at them.
struct DomainSurvey {
  std::vector<DomainSummary> summaries;
  /// Of those with metadata of ours: the persistent XML, then the live one. Whether the metadata
  /// are ours indeed only isSealed() (seal.hpp) tells.
  std::vector<domain::ParsedDomain> managed;
  std::vector<Uuid> active;
  /// Domains with devices of ours and without metadata, which do not start.
  std::vector<DomainSummary> strays;
  std::vector<NetworkPool> pools;  ///< what libvirt networks hand out
};

/// Asks libvirt for every domain. No lock of ours may be held: libvirt takes each domain's lock for
/// it, and a domain that starts holds its own while our hook waits for ours.
DomainSurvey surveyDomains(Session& session);

/// One VM with its mapping.
struct Subject {
  Mapping mapping;
  DomainDescription domain;
  std::vector<Mapping> otherMappings;
  std::map<std::string, plan::Objection> nearFaults;  ///< entries whose `near` has no PF
  std::vector<std::string> nearReasons;               ///< why the others have theirs
};

/// The domain and the mapping that `vm` (name or UUID) names. Throws with exit code 2 when either
/// is missing, the mapping has mistakes, or it disagrees with another one.
Subject findSubject(Session& session, const std::string& vm);

/// `--live` and `--config`.
struct ScopeOptions {
  bool live = false;
  bool config = false;
};

/// Without an option: the persistent configuration, if there is one, and the running domain, if it
/// runs. Throws (bad input) for what the domain has not.
Scope scopeFor(const DomainDescription& domain, const ScopeOptions& options);

struct HostReading;

/// Everything that attach looks at, once `near` is settled (settle_near.hpp). For a change, hold
/// the locks of pfsOf() before, also while the host is read (host_reading.hpp).
plan::AttachInput attachInput(Session& session, const Subject& subject, const DomainSurvey& survey,
                              const std::vector<Lease>& leases, const Scope& scope,
                              const HostReading& host);

/// The same leases with the names that their domains have now: libvirt renames domains.
std::vector<Lease> withCurrentNames(std::vector<Lease> leases, const DomainSurvey& survey);

/// The leases in the running domain's metadata. Where these are not sealed, the ones in `leases` of
/// the devices that it has: what a rollback puts back is sealed, so it must not come from anybody
/// else.
std::vector<Lease> liveLeases(Session& session, const DomainDescription& domain,
                              const std::vector<Lease>& leases);

/// PFs and PCI functions that attaching this subject can touch: what is to be locked.
std::vector<PciAddress> pfsOf(const Subject& subject, const Inventory& inventory,
                              const std::vector<Lease>& leases);

/// Leases of one domain.
std::vector<Lease> leasesOf(const std::vector<Lease>& leases, const Uuid& domain);

}  // namespace vfpass::cli
