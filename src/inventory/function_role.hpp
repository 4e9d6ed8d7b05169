#pragma once

#include <optional>

#include "pci_config.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// What a function is, by class, vendor and driver, and for bridges by their capability. Nothing
/// about its netdevs is known yet: see readPorts.
FunctionRole roleOf(const TopologyFunction& function, const std::optional<PortType>& port);

/// Bridges whose capability could not be read: what they must be, seen from where they sit. A root
/// port below an upstream port, which QEMU allows, is a downstream port of that switch.
void guessPorts(Topology& topology);

}  // namespace vfpass::inventory
