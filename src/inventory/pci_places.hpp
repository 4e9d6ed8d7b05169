#pragma once

#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// The place of each function: address, device path, host bridge and parent of every function of
/// the host, sorted by address; everything else is empty. A function's place follows from its link
/// in sys/bus/pci/devices. An invalid link is a problem, and its function is omitted. A parent at a
/// different path is a problem, and its child has no parent. The result is therefore always a
/// forest.
Topology readPlaces(const host::Root& root);

}  // namespace vfpass::inventory
