#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/inventory.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass::host {

/// What a link's reply says about its VFs, by index. VFs can be missing: the list's length has 16
/// bits and wraps, and a driver may fail for one of them.
using VfTable = std::map<unsigned, VfSettings>;

/// Reads one RTM_NEWLINK message. Damaged parts are left out, whatever stands in them.
/// `infiniband`: only link state and GUIDs say something about a VF; IPoIB fills in the PF's own
/// address as MAC. Nullopt when this is no message about that interface.
std::optional<VfTable> parseLinkReply(std::string_view bytes, int interfaceIndex, bool infiniband);

/// What each VF's statistics say, by index; a VF whose driver gives none is missing.
using VfTrafficTable = std::map<unsigned, VfTraffic>;

/// Reads the statistics of one RTM_NEWLINK message, with the limits of parseLinkReply.
std::optional<VfTrafficTable> parseTrafficReply(std::string_view bytes, int interfaceIndex);

/// The counters of VF `index`; nullopt where the table does not tell them. rtnetlink fills in zeros
/// for a driver that counts nothing (rtnl_fill_vfinfo without ndo_get_vf_stats, such as igb's), so
/// a PF whose VFs have nothing but zeros counts only if its driver is known to: mlx5_core.
std::optional<VfTraffic> trafficOf(const VfTrafficTable& table, unsigned index,
                                   std::string_view driver);

/// The kernel's answer to a request.
struct Acknowledgement {
  int error = 0;        ///< errno, 0: done
  std::string message;  ///< the driver's own words (extended acknowledgement), made printable
};

/// Reads one NLMSG_ERROR message; nullopt when it is anything else.
std::optional<Acknowledgement> parseAcknowledgement(std::string_view bytes);

}  // namespace vfpass::host
