#pragma once

#include <optional>

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

/// Role of a function by class, vendor and driver, and for bridges by their capability. Its netdevs
/// are not known yet: see readPorts.
FunctionRole roleOf(const Device& function, const std::optional<PortType>& port);

/// Derives the role of bridges whose capability could not be read from their position. A root port
/// below an upstream port, which QEMU allows, becomes a downstream port of that switch.
void guessPorts(Topology& topology);

/// Removes the GPU role from graphics that are part of the processor: they have no memory of their
/// own that a NIC could access. Intel's are in slot 2 of the root bus, where no card can be; AMD's
/// before Zen are in slot 1 of the root bus, the later ones
/// share a slot with functions of the processor (vendor 1022: the security processor, USB), while
/// all functions of a graphics card have vendor 1002.
void dropIntegratedGraphics(Topology& topology);

}  // namespace vfpass::inventory
