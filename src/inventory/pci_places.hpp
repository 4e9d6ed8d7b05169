#pragma once

#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Where each function sits: address, device path, host bridge and parent of every function of the
/// host, all else empty; sorted by address. A function's place is what its link in
/// sys/bus/pci/devices says; a link that says nothing sensible is a problem and its function is
/// left out, a parent that is not where its child says is a problem and its child stands alone, so
/// that the result is a forest whatever was read.
Topology readPlaces(const host::Root& root);

}  // namespace vfpass::inventory
