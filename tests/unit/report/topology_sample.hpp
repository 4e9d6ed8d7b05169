#pragma once

#include "vfpass/report/topology_report.hpp"

namespace vfpass::report::samples {

/// Two nodes: a switch with two GPUs and two PFs of four VFs each, and a GPU and a slow PF at root
/// ports; two VMs hold VFs, one of them also a GPU.
TopologyReport topology();

/// The same with hostile names.
TopologyReport hostileTopology();

}  // namespace vfpass::report::samples
