#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"

namespace vfpass::verify {

/// Indices of leases.
using VfGroup = std::vector<std::size_t>;

/// Divides the VFs into groups that share neither a PF nor a GPU, so that measurements of different
/// groups do not compete for a port or for a GPU's PCI Express link. `gpus`: assignGpus(). Groups
/// and their members are in the leases' order. Pure.
std::vector<VfGroup> independentVfs(const std::vector<Lease>& leases,
                                    const std::map<std::string, std::vector<std::size_t>>& gpus);

/// How many groups are verified at the same time. A transfer keeps two of the guest's processors
/// busy, one for each end. `vcpus` 0: unknown, and then one group at a time. At least 1.
std::size_t concurrentGroups(std::size_t groups, unsigned vcpus);

}  // namespace vfpass::verify
