#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace vfpass::host
