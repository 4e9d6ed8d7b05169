#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::host {

/// Settings to apply to one VF; only members with a value are sent.
struct VfRequest {
  unsigned index = 0;
  VfSettings settings;

  auto operator<=>(const VfRequest&) const = default;
};

/// Maximum length of one request in bytes. The kernel accepts nested lists up to 64 KiB.
inline constexpr std::size_t requestLimit = 32768;

/// RTM_GETLINK for one interface with its VFs, without their statistics, which would make the VF
/// list with its 16-bit length wrap sooner.
std::string linkQuery(int interfaceIndex, std::uint32_t sequence);
/// The same with the statistics.
std::string trafficQuery(int interfaceIndex, std::uint32_t sequence);

/// RTM_SETLINK messages that apply these settings, as few as `limit` allows. They do not request
/// the VF list.
std::vector<std::string> linkChanges(int interfaceIndex, std::uint32_t sequence,
                                     const std::vector<VfRequest>& requests,
                                     std::size_t limit = requestLimit);

/// The VF settings in a link's reply, by index. VFs can be missing: the list has a 16-bit length
/// that wraps, and a driver may fail for one of them.
using VfTable = std::map<unsigned, VfSettings>;

/// Parses one RTM_NEWLINK message. Malformed parts are skipped.
/// `infiniband`: only link state and GUIDs are valid; IPoIB reports the PF's own address as MAC.
/// Nullopt when the message is not about that interface.
std::optional<VfTable> parseLinkReply(std::string_view bytes, int interfaceIndex, bool infiniband);

/// Statistics of the VFs, by index; VFs without statistics are missing.
using VfTrafficTable = std::map<unsigned, VfTraffic>;

/// Parses the statistics in one RTM_NEWLINK message, with the limits of parseLinkReply.
std::optional<VfTrafficTable> parseTrafficReply(std::string_view bytes, int interfaceIndex);

/// The counters of VF `index`; nullopt where unknown. rtnetlink reports zeros for a driver without
/// VF counters (rtnl_fill_vfinfo without ndo_get_vf_stats, as for igb), so a table of zeros is only
/// valid for a driver that is known to count: mlx5_core.
std::optional<VfTraffic> trafficOf(const VfTrafficTable& table, unsigned index,
                                   std::string_view driver);

/// All counters of the VFs, by index; VFs without statistics are missing.
using VfStatisticsTable = std::map<unsigned, VfStatistics>;

/// Parses the same message as parseTrafficReply; counters that it lacks are missing.
std::optional<VfStatisticsTable> parseStatisticsReply(std::string_view bytes, int interfaceIndex);

/// The table, or an empty one if its zeros mean that the driver does not count (trafficOf).
VfStatisticsTable countedStatistics(VfStatisticsTable table, std::string_view driver);

}  // namespace vfpass::host
