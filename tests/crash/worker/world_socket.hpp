#pragma once

#include <atomic>
#include <string>

#include "worker/wire.hpp"

namespace vfpass::crash {

/// In a worker: the socket to the world. -1 in the world itself, where no call is intercepted.
extern int worldSocket;

/// The allocations of a worker with all its processes, in memory that they share with the world.
struct AllocationCount {
  std::atomic<long> made = 0;
  long failing = -1;  ///< the number of the one that fails, from 1; -1: none
};
AllocationCount& allocationCount();

/// Sends a request and waits for the reply. Ends the process if the world is gone. Threads take
/// turns.
Message ask(const Message& request);

/// Announces a system call that changes a file. Returns the errno with which it has to fail, or 0.
/// Does not return if the world kills this process. Keeps errno.
int announce(const char* call, const std::string& path);

}  // namespace vfpass::crash
