#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `opensm` is a fragment of OpenSM's partitions.conf (doc/partition-config.txt in its sources).
enum class GuidFormat { table, opensm, csv };

/// The GUIDs that a host's leases give to InfiniBand VFs.
struct GuidList {
  std::string host;           ///< name of the host
  std::vector<Lease> leases;  ///< of InfiniBand VFs with a port GUID
  /// The partition of these VFs, without the bit for full membership; required for `opensm`.
  std::optional<std::uint16_t> partition;
};

/// `vfpass host guids`. Without leases, a table says so, and the other formats have no row or rule.
/// JSON, whatever the format: docs/json/guids.schema.json.
void writeGuids(std::ostream& out, const GuidList& list, GuidFormat format, const Style& style);

}  // namespace vfpass::report
