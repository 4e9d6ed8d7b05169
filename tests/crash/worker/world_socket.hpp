#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "worker/wire.hpp"

namespace vfpass::crash {

/// In a worker: the socket to the world. -1 in the world itself, where no call is intercepted.
extern int worldSocket;

/// What a worker with all its processes shares with the world, in shared memory.
struct SharedState {
  static constexpr std::int64_t realTime = -1;

  std::atomic<long> allocations = 0;  ///< of memory
  long failingAllocation = -1;        ///< the number of the one that fails, from 1; -1: none
  std::atomic<long> opens = 0;        ///< of files
  long failingOpen = -1;              ///< the number of the first one that fails; -1: none
  /// Nanoseconds since the first boot of the simulated host, whose clocks then stand still unless a
  /// Scheduler advances them.
  std::atomic<std::int64_t> clock = realTime;
  std::atomic<std::int64_t> setTo = 0;  ///< what somebody has added to the date, in nanoseconds
};
SharedState& sharedState();

/// In a worker: a Scheduler owns its time, its locks and the order of its processes.
inline bool isScheduled() {
  return worldSocket >= 0 && sharedState().clock != SharedState::realTime;
}

/// The time that a clock of the simulated host shows.
timespec virtualTime(clockid_t clock);

/// Sends a request and waits for the reply. Ends the process if the world is gone. Threads take
/// turns.
Message ask(const Message& request);

/// Announces a system call that changes a file: its name, the path, and for a write offset and
/// length. Returns the errno with which it has to fail, or 0. Does not return if the world kills
/// this process. Keeps errno.
int announce(const Message& change);

}  // namespace vfpass::crash
