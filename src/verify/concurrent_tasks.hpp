#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "vfpass/agent/agent.hpp"

namespace vfpass::verify {

/// A part of a verification that runs in a thread of its own. It uses copies of the agents with
/// this checkpoint (Agent::withCheckpoint), and must not throw.
using Task = std::function<void(const agent::Agent::Checkpoint& checkpoint)>;

/// Runs the tasks, at most `workers` at the same time, and returns when all have ended. Meanwhile
/// calls `checkpoint` in this thread. If that throws, no further task starts, the running ones' own
/// checkpoints throw once, and the exception leaves this function after the last of them.
void runConcurrently(const std::vector<Task>& tasks, std::size_t workers,
                     const agent::Agent::Checkpoint& checkpoint);

}  // namespace vfpass::verify
