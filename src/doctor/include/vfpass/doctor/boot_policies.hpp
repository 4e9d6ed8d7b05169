#pragma once

#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::doctor {

/// What the files of netplan, NetworkManager and systemd, and the scripts that run at boot, set on
/// PFs and their VFs, in this order. Each has the remedy of doctor's check of that file. A captured
/// tree has only what doctor keeps of these files (knownSettings()).
std::vector<BootPolicy> bootPolicies(const host::Root& root, const Topology& topology);

}  // namespace vfpass::doctor
