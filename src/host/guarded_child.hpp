#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace vfpass::host {

/// What came back from a guarded child.
struct GuardedReply {
  bool finished = false;  ///< false: the deadline passed, the child is still at it
  std::string bytes;      ///< what it wrote before it ended or the deadline passed
};

/// More than this is not read of a child's reply, unless its caller says otherwise.
inline constexpr std::size_t guardedReplyLimit = std::size_t{1} << 20U;

/// Runs `operation(replyPipe)` in a process that nobody waits for: a task that hangs in the kernel
/// in state D cannot be killed, and neither we nor libvirtd, our parent, may hang with it.
/// The child keeps no descriptor but `kept` (-1: none) and the pipe, because an inherited flock
/// would stay locked, and libvirt reads a hook's stderr until every copy of it is closed.
/// A reply that is longer than `limit` is cut off there, one buffer behind it at most.
/// `operation` may only make async-signal-safe calls and must not allocate memory.
GuardedReply runGuarded(std::chrono::milliseconds deadline, int kept,
                        const std::function<void(int replyPipe)>& operation,
                        std::size_t limit = guardedReplyLimit);

/// Starts `operation(end)` in such a process and comes back at once; its `end` is a copy.
void startGuarded(int end, int kept, const std::function<void(int end)>& operation);

/// write(2) of all bytes; gives up at the first error. Async-signal-safe.
void writeAll(int descriptor, const void* bytes, std::size_t length);

}  // namespace vfpass::host
