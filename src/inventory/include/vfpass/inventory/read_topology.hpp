#pragma once

#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Every PCI function below `root` in its place. Reads few files of each, in one pass, and asks no
/// driver for anything slow but the ports of PFs and the serial numbers of cards. What vanishes
/// meanwhile or makes no sense is told in `problems`. Never fails.
Topology readTopology(const host::Root& root);

/// Model names for what people know by name: GPUs, NICs that are no VFs, NVSwitches.
void nameModels(Topology& topology);

}  // namespace vfpass::inventory
