#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
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
};

/// A domain that has no lease, and metadata of ours that are not acted on.
struct RefusedMetadata {
  std::string domainName;
  Uuid domain;
  std::string reason;
  std::string remedy;
};

/// `vfpass status`: a table of leases, below it every drift, the refused metadata and the notes.
/// JSON: docs/json/status.schema.json.
void writeStatus(std::ostream& out, const std::vector<StatusEntry>& entries,
                 const std::vector<RefusedMetadata>& refused, const std::vector<std::string>& notes,
                 const Style& style);

}  // namespace vfpass::report
