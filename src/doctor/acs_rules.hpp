#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "view.hpp"

namespace vfpass::doctor {

// What the ports between a GPU and a NIC need for guests. The reference is rdma_topo of rdma-core
// (kernel-boot/rdma_topo, compute_acs). Patterns are written as for `pci=config_acs=`.

/// For guests whose GPU and NIC share a switch: the NIC's port forwards translated requests
/// directly, all other requests go through the IOMMU.
inline constexpr std::string_view directPort = "1x111x1";
/// What the kernel sets by default (pci_std_enable_acs).
inline constexpr std::string_view isolatingPort = "xx111x1";

/// What one port needs.
struct PortRule {
  std::string pattern;         ///< never has a 1 for a bit that the port lacks
  bool turnsRequests = false;  ///< requests from NIC to GPU turn here: `1x111x1` at best
};

/// What the ports of one rail need.
struct RailRules {
  std::map<std::size_t, PortRule> ports;  ///< by number of the function
  bool directNic = false;  ///< ports of a Direct NIC, which no argument of ours may set
  std::string notJudged;   ///< why the ports cannot be judged; empty: they can
};

RailRules acsRulesOf(const View& view, const topology::Rail& rail);

/// How the ports of all rails of the host get what they need (acsRulesOf): one kernel argument for
/// the whole host, after what must hold before it is added.
std::string acsRemedy(const View& view);

}  // namespace vfpass::doctor
