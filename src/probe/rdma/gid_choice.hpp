#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vfpass::probe {

/// One entry of a port's GID table, as sysfs shows it.
struct GidEntry {
  int index = 0;
  std::string gid;     ///< eight groups of four hexadecimal digits
  std::string type;    ///< `IB/RoCE v1` or `RoCE v2`
  std::string netdev;  ///< that has the address; empty on InfiniBand
};

/// The index to use. On RoCE: version 2 before version 1 (it is routable, and switches' congestion
/// control supports it), within each an IPv4 address before a global IPv6 address before a
/// link-local one, then the lowest index. On InfiniBand: the lowest. nullopt for an empty table.
std::optional<int> recommendedGid(const std::vector<GidEntry>& entries, bool ethernet);

/// All zeroes: an unused entry.
bool isEmptyGid(const std::string& gid);

}  // namespace vfpass::probe
