#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/flow_control.hpp"

namespace vfpass::host {

/// RTM_GETDCB: all IEEE attributes that a netdev's driver reports.
std::string dcbQuery(const std::string& netdev);

/// Nullopt when it is another message, is about another netdev, or has no priority flow control
/// attribute.
std::optional<FlowControl> parseDcbReply(std::string_view bytes, const std::string& netdev);

}  // namespace vfpass::host
