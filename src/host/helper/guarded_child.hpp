#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace vfpass::host {

/// The reply of a guarded child.
struct GuardedReply {
  bool finished = false;  ///< false: the deadline passed and the child is still running
  std::string bytes;      ///< written before the child exited or the deadline passed
  pid_t child = -1;       ///< the leader of its session and process group
};

/// Default limit on the length of a child's reply.
inline constexpr std::size_t guardedReplyLimit = std::size_t{1} << 20U;

/// Runs `operation(replyPipe)` in a child of its own session: a task in state D cannot be killed,
/// and neither vfpass nor its parent libvirtd may hang with it. Nothing waits for a child that
/// hangs: it becomes a child of init when this process ends. The child keeps no descriptor except
/// `kept` (-1: none) and the pipe: an inherited flock would stay locked, and libvirt reads a hook's
/// stderr until every copy of it is closed. Reading stops once the reply exceeds `limit`, at most
/// one buffer beyond it. `operation` may only make async-signal-safe calls and must not allocate
/// memory.
GuardedReply runGuarded(std::chrono::milliseconds deadline, int kept,
                        const std::function<void(int replyPipe)>& operation,
                        std::size_t limit = guardedReplyLimit);

/// The same with `consume` instead of a limit: it receives the reply piece by piece, instead of
/// GuardedReply::bytes, and returns false to end the reading.
GuardedReply runGuarded(std::chrono::milliseconds deadline, int kept,
                        const std::function<void(int replyPipe)>& operation,
                        const std::function<bool(std::string_view bytes)>& consume);

/// Starts `operation(end)` in such a process and returns at once; its `end` is a copy.
pid_t startGuarded(int end, int kept, const std::function<void(int end)>& operation);

/// Waits for the children that have ended, without blocking. startGuarded() does it too, so at most
/// the children since its last call are zombies. Thread-safe.
void reapGuarded();

/// Writes all bytes with write(2); false: stopped at an error. Async-signal-safe.
bool writeAll(int descriptor, const void* bytes, std::size_t length);

}  // namespace vfpass::host
