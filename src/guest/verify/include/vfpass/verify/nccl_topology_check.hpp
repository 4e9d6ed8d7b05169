#pragma once

#include <string>

#include "vfpass/agent/agent.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Whether NCCL in the guest finds a topology file. A mirrored tree needs one: QEMU's switch ports
/// report 2.5 GT/s x1, and NCCL then plans with 0.2 GB/s (measured with NCCL 2.28;
/// docs/guest-topology.md). `confFile` and `daemonFile` are paths in the guest. Throws
/// AgentUnavailable.
Finding checkNcclTopology(
    agent::Agent& agent, const std::string& confFile = "/etc/nccl.conf",
    const std::string& daemonFile = "/var/run/nvidia-topologyd/virtualTopology.xml");

}  // namespace vfpass::verify
