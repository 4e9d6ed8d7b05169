#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vfpass::host {

/// Data centre bridging of a netdev, as IEEE 802.1Q has it.
struct FlowControl {
  std::uint8_t pausedPriorities = 0;  ///< bit n: priority flow control is on for priority n
  bool trustsDscp = false;            ///< some DSCP is mapped to a priority

  auto operator<=>(const FlowControl&) const = default;
};

/// Asks the running kernel over netlink (RTM_GETDCB, which needs no rights). nullopt: the driver
/// has no data centre bridging. Throws Error, TimeoutError.
std::optional<FlowControl> readFlowControl(const std::string& netdev,
                                           std::chrono::milliseconds deadline);

}  // namespace vfpass::host
