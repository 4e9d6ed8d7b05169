#pragma once

#include <optional>

#include "pci_config.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Role of a function by class, vendor and driver, and for bridges by their capability. Its netdevs
/// are not known yet: see readPorts.
FunctionRole roleOf(const TopologyFunction& function, const std::optional<PortType>& port);

/// Derives the role of bridges whose capability could not be read from their position. A root port
/// below an upstream port, which QEMU allows, becomes a downstream port of that switch.
void guessPorts(Topology& topology);

}  // namespace vfpass::inventory
