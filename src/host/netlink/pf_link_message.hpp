#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/link_settings.hpp"

namespace vfpass::host {

/// RTM_GETLINK for one interface, without VFs and statistics.
std::string linkSettingsQuery(int interfaceIndex);
/// RTM_SETLINK requests with NLM_F_ACK.
std::string mtuChange(int interfaceIndex, unsigned mtu);
std::string upChange(int interfaceIndex, bool up);

/// Nullopt when this is not an RTM_NEWLINK message about that interface, or has no MTU.
std::optional<LinkSettings> parseLinkSettings(std::string_view bytes, int interfaceIndex);

}  // namespace vfpass::host
