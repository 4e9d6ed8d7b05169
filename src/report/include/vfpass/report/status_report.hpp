#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// One lease beside what kernel, libvirt and mapping say now.
struct StatusEntry {
  Lease lease;
  bool domainExists = true;
  bool domainActive = false;
  std::vector<std::string> drift;  ///< one line for each difference; empty: all as attach left it
  /// Attributes that the kernel does not show: neither drift nor as attach left them.
  std::vector<std::string> notObservable = {};
  /// In the guest's own bus numbers; nullopt: the domain's XML does not show it, and the lease's
  /// place is told.
  std::optional<PciAddress> guestAddress = {};
};

/// A domain that has no lease, and metadata of ours that are not acted on.
struct RefusedMetadata {
  std::string domainName;
  Uuid domain;
  std::string reason;
  std::string remedy;
};

/// All that `vfpass status` shows.
struct StatusReport {
  std::vector<StatusEntry> entries;
  std::vector<PeerMapping> peers;  ///< of domains with at least two of the host's devices
  std::vector<RefusedMetadata> refused;
  std::vector<std::string> notes;
};

/// A table of leases, below it every drift, peer-to-peer mappings, refused metadata and the notes.
/// JSON: docs/json/status.schema.json.
void writeStatus(std::ostream& out, const StatusReport& status, const Style& style);

}  // namespace vfpass::report
