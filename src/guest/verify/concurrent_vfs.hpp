#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vfpass/agent/agent.hpp"
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

/// A part of a verification that runs in a thread of its own. It uses copies of the agents with
/// this checkpoint (Agent::withCheckpoint), and must not throw.
using Task = std::function<void(const agent::Agent::Checkpoint& checkpoint)>;

/// Runs the tasks, at most `workers` at the same time, and returns when all have ended. Meanwhile
/// calls `checkpoint` in this thread. If that throws, no further task starts, the running ones' own
/// checkpoints throw once, and the exception leaves this function after the last of them.
void runConcurrently(const std::vector<Task>& tasks, std::size_t workers,
                     const agent::Agent::Checkpoint& checkpoint);

}  // namespace vfpass::verify
