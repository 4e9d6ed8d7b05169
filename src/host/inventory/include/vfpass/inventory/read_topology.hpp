#pragma once

#include "vfpass/host/root.hpp"
#include "vfpass/host/vital_product_data.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Every PCI function below `root` and its place in the PCI tree. Reads few files of each, in one
/// pass. The only slow reads are the ports of PFs and the serial numbers of cards. Reports
/// functions that disappear meanwhile and invalid data in `problems`. Never fails.
Topology readTopology(const host::Root& root, host::Serials serials = host::Serials::read);

}  // namespace vfpass::inventory
