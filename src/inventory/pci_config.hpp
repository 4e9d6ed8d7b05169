#pragma once

#include <optional>
#include <string_view>

#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Device/Port Type of the PCI Express capability (PCI Express Base Specification, 7.5.3.2).
enum class PortType : unsigned {
  endpoint = 0,
  legacyEndpoint = 1,
  rootPort = 4,
  upstreamPort = 5,
  downstreamPort = 6
};

/// What the PCI Express capability in configuration space says.
struct PcieCapability {
  PortType type = PortType::endpoint;
  PcieLink link;
  PcieLink best;
};

/// `config` is the beginning of a function's configuration space, however short (the kernel shows
/// 64 bytes to others than root). Nullopt when it holds no PCI Express capability, and for a list
/// of capabilities that leads out of it or in a circle.
std::optional<PcieCapability> findPcieCapability(std::string_view config);

}  // namespace vfpass::inventory
