#pragma once

#include <chrono>
#include <map>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The counters of the PF's VFs, by index. First from the files of drivers that have them
/// (`sriov/INDEX/stats/rx_bytes` below the PF: i40e and ice as Intel distributes them), otherwise
/// on the running system from one rtnetlink request: the order of sriov-network-metrics-exporter.
/// VFs that neither counts are missing. Throws Error, TimeoutError.
std::map<unsigned, VfStatistics> readVfStatistics(const Root& root, const PhysicalFunction& pf,
                                                  std::chrono::milliseconds netlinkDeadline);

}  // namespace vfpass::host
