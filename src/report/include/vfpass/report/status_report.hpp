#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// One lease compared with the current state in kernel, libvirt and mapping.
struct StatusEntry {
  Lease lease;
  bool domainExists = true;
  bool domainActive = false;
  std::vector<std::string> drift;  ///< one line per difference from the state after attach
  /// Attributes that the kernel does not report: neither drift nor known to be correct.
  std::vector<std::string> notObservable = {};
  /// In the guest's own bus numbers; nullopt if the domain's XML does not determine it: then the
  /// address recorded in the lease is shown.
  std::optional<PciAddress> guestAddress = {};
  std::string representor = {};  ///< of the VF, in switchdev mode; empty: none
  /// While the guest is stopped: attributes of the VF that differ from the lease, such as `vlan 5
  /// instead of 100`. The next start sets them, so this is not drift.
  std::vector<std::string> setAtStart = {};
  /// False if libvirt did not answer: whether the domain runs is then the last record, and drift is
  /// only that of the kernel.
  bool domainAnswered = true;
};

/// A domain whose vfpass metadata is not acted on.
struct RefusedMetadata {
  std::string domainName;
  Uuid domain;
  std::string reason;
  std::string remedy;
};

/// Everything that `vfpass status` shows.
struct StatusReport {
  std::vector<StatusEntry> entries;
  std::vector<PeerMapping> peers;  ///< of domains with at least two of the host's devices
  std::vector<RefusedMetadata> refused;
  std::vector<std::string> notes;
};

/// A table of leases, followed by drift, peer-to-peer mappings, refused metadata and notes. JSON:
/// docs/json/status.schema.json.
void writeStatus(std::ostream& out, const StatusReport& status, const Style& style);

}  // namespace vfpass::report
