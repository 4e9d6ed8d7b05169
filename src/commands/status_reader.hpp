#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attach_input.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/report/status_report.hpp"

namespace vfpass::commands {

/// Whether the lease belongs to the domain `vm` (name or UUID); empty: any.
bool isLeaseOf(const std::string& vm, const Lease& lease);

/// Compares leases with kernel, libvirt and mappings, for commands that report. Reads libvirt's
/// domains at once and the host when first needed; changes nothing. All calls throw Error.
class StatusReader {
 public:
  /// `session` must outlive this object. With `unanswered`, libvirt need not answer: then the
  /// entries have what the records and the kernel know, and `unanswered` has the reason.
  explicit StatusReader(Session& session, std::optional<Error>* unanswered = nullptr);

  /// One entry per lease of this domain; empty: of all.
  std::vector<report::StatusEntry> read(const std::string& vm);

  /// Only of domains without a lease; for those with one it is drift. One entry per domain, with
  /// its first fault.
  std::vector<report::RefusedMetadata> readRefused(const std::string& vm);

  /// Of the domains that read() has looked up in libvirt.
  std::vector<PeerMapping> readPeers();

 private:
  const HostReading& host();
  std::optional<DomainDescription> find(const Uuid& uuid);
  std::string remedyFor(const apply::RefusedMetadata& refused);
  std::vector<std::string> driftOf(const std::optional<DomainDescription>& domain,
                                   const Uuid& uuid);
  report::StatusEntry entryFor(const Lease& lease);

  Session& session_;
  bool answered_ = true;  ///< libvirt, when the domains were read
  DomainSurvey survey_;
  std::vector<Lease> leases_;  ///< with the current names of their domains
  std::optional<HostReading> host_;
  std::string bootId_;
  std::map<Uuid, std::optional<DomainDescription>> domains_;
};

/// Those of the mappings, by their `vm:`, that none of the leases belongs to.
std::vector<std::string> unattachedMappings(const std::vector<Mapping>& mappings,
                                            const std::vector<Lease>& leases);

/// Domains that have started and whose verification, which their mapping asks for, has not ended.
std::vector<Uuid> pendingVerifications(Session& session, const std::vector<Lease>& leases);

}  // namespace vfpass::commands
