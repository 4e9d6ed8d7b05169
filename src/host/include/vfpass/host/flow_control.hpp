#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vfpass::host {

/// Data centre bridging settings of a netdev (IEEE 802.1Q).
struct FlowControl {
  std::uint8_t pausedPriorities = 0;  ///< bit n: priority flow control is on for priority n
  bool trustsDscp = false;            ///< at least one DSCP is mapped to a priority

  auto operator<=>(const FlowControl&) const = default;
};

/// Queries the running kernel over netlink (RTM_GETDCB, which needs no privileges). nullopt: the
/// driver does not support data centre bridging. Throws Error, TimeoutError.
std::optional<FlowControl> readFlowControl(const std::string& netdev,
                                           std::chrono::milliseconds deadline);

/// RTM_GETDCB: all IEEE attributes that a netdev's driver reports.
std::string dcbQuery(const std::string& netdev);

/// Nullopt when it is another message, is about another netdev, or has no priority flow control
/// attribute.
std::optional<FlowControl> parseDcbReply(std::string_view bytes, const std::string& netdev);

}  // namespace vfpass::host
