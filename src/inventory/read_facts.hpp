#pragma once

#include "vfpass/host/folder.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Reads a function's own files into it: identity, driver, link, node, group, SR-IOV capacity and
/// the names of its devices. `isVf` spares a VF what it has from its PF. False when the function
/// is gone.
bool readFacts(const host::Folder& folder, bool isVf, TopologyFunction& function,
               std::vector<TopologyProblem>& problems);

}  // namespace vfpass::inventory
