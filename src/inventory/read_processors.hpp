#pragma once

#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// From proc/cpuinfo and sys/devices/system/node; a kernel without NUMA has no nodes.
Processors readProcessors(const host::Root& root);

}  // namespace vfpass::inventory
