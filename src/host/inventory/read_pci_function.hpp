#pragma once

#include <optional>
#include <string_view>

#include "vfpass/host/root.hpp"
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

/// Reads a function's own files: identity, driver, link, node, group, SR-IOV capacity and the names
/// of its devices. `isVf` skips what a VF has from its PF. Returns false if the function no longer
/// exists.
bool readFacts(const host::Folder& folder, bool isVf, Device& function,
               std::vector<TopologyProblem>& problems);

}  // namespace vfpass::inventory
