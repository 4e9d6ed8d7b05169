#pragma once

#include <optional>
#include <string_view>

#include "function_role.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

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
