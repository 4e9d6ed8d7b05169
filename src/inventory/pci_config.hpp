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

/// The PCI Express capability in configuration space.
struct PcieCapability {
  PortType type = PortType::endpoint;
  PcieLink link;
  PcieLink best;
};

/// `config` is the beginning of a function's configuration space, of any length (without root the
/// kernel returns 64 bytes). nullopt if it has no PCI Express capability, or if the capability list
/// is circular or leaves it.
std::optional<PcieCapability> findPcieCapability(std::string_view config);

}  // namespace vfpass::inventory
