#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

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

/// Kills a child that has not replied in time, and waits until it has ended; false: it has not yet.
/// Even then it returns from its call in the kernel only to end.
bool endGuarded(pid_t child, std::chrono::milliseconds timeout);

/// Writes all bytes with write(2); false: stopped at an error. Async-signal-safe.
bool writeAll(int descriptor, const void* bytes, std::size_t length);

/// Marks a guarded child for as long as its call on a device is pending in the kernel, so that
/// every vfpass process can tell: by an anonymous file (memfd_create(2)) with the task's name,
/// which the child has open, and by the name itself (taskName()). The name is for people and
/// makes the search cheap, but any user can run any program under it. Only root can create a file
/// of root in the file system of anonymous files. The mark ends with the child's call, whatever
/// becomes of the process that started it, of the run directory and of the child's PID.
/// For guarded children: does not allocate memory.
class CallMark {
 public:
  /// `name` is a taskName(); must outlive the mark.
  explicit CallMark(const char* name);
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;
  ~CallMark();

  /// errno: without a mark the call must not be made. 0: the mark is in place.
  [[nodiscard]] int error() const { return error_; }

 private:
  int file_ = -1;
  int error_ = 0;
};

/// The device on which this process has a marked call pending; nullopt: none. `name` is its task's
/// name.
std::optional<PciAddress> markedDevice(const Root& root, const std::string& process,
                                       std::string_view name);

/// Name of a guarded child in /proc/PID/comm while it does not work on a device.
inline constexpr const char* idleTaskName = "vfpass-guarded";

/// Its name while it works on a device: `vf0000:3b:00.1`. Any process can have such a name: it
/// proves nothing (CallMark). At most 15 characters (TASK_COMM_LEN): an address whose domain
/// has more than five digits is written without separators.
std::string taskName(const PciAddress& device);

/// The device in such a name; nullopt for any other name.
std::optional<PciAddress> deviceInTaskName(std::string_view name);

}  // namespace vfpass::host
