#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The counters of the PF's VFs, by index. First from the files of drivers that have them
/// (`sriov/INDEX/stats/rx_bytes` below the PF: i40e and ice as Intel distributes them), otherwise
/// on the running system from one rtnetlink request: the order of sriov-network-metrics-exporter.
/// VFs that neither counts are missing. Throws Error, TimeoutError.
std::map<unsigned, VfStatistics> readVfStatistics(const Root& root, const PhysicalFunction& pf,
                                                  std::chrono::milliseconds netlinkDeadline);

/// Bytes of a VF's RDMA packets, which the card counts apart from those of its Ethernet packets.
struct RdmaBytes {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};

/// Of a VF's representor, which exists in switchdev mode, by the statistics that `ethtool -S`
/// shows: mlx5's rx_vport_rdma_unicast_bytes and the like (vport_rep_stats_desc in
/// drivers/net/ethernet/mellanox/mlx5/core/en_rep.c). nullopt if the driver has none of them; in
/// legacy mode it reports only their sum with Ethernet's (mlx5_eswitch_get_vport_stats).
std::optional<RdmaBytes> readRdmaBytes(const std::string& representor);

/// The same of statistics by name. They are those of the switch's port: it receives what the VF
/// sends.
std::optional<RdmaBytes> rdmaBytesIn(const std::map<std::string, std::uint64_t>& statistics);

}  // namespace vfpass::host
