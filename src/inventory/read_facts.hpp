#pragma once

#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Reads a function's own files: identity, driver, link, node, group, SR-IOV capacity and the names
/// of its devices. `isVf` skips what a VF has from its PF. Returns false if the function no longer
/// exists.
bool readFacts(const host::Folder& folder, bool isVf, TopologyFunction& function,
               std::vector<TopologyProblem>& problems);

}  // namespace vfpass::inventory
