#pragma once

#include <optional>
#include <string>
#include <vector>

#include "worker/wire.hpp"

namespace vfpass::crash {

/// What a request of a worker changes; only these requests are counted and can fail.
enum class ChangeClass {
  none,     ///< it only reads
  kernel,   ///< sysfs, netlink or the fabric manager
  libvirt,  ///< a definition or a running domain
  file,     ///< a file of vfpass
  start,    ///< nothing, but a process or thread is started
  query,    ///< nothing, but libvirt is asked
  open,     ///< nothing, but a file is opened; workers count these themselves
};

ChangeClass classOf(const Message& request);

enum class FaultMode {
  none,
  kill,        ///< SIGKILL before the change
  killLate,    ///< SIGKILL; the kernel completes the change `delay` requests later
  error,       ///< the change fails
  errorAfter,  ///< the change takes effect, but the caller gets the error
  errorFrom,   ///< this change and every later one fail: a full disk, a stopped daemon
  lastEffect,  ///< as `errorAfter`, then nothing of its class answers: libvirtd executes and dies
  hang,        ///< no reply within the deadline; the kernel completes the change later
  freeze,      ///< this change and every later one of its class never return: a frozen file system
};

/// One fault during one command.
struct Fault {
  FaultMode mode = FaultMode::none;
  /// Changes of this class count. nullopt: of kernel, libvirt and files.
  std::optional<ChangeClass> only;
  int error = 0;
  int delay = 0;  ///< for killLate
  long at = -1;   ///< number of the change, from 1; -1: the fault does not happen
};

/// What one command did.
struct Result {
  int code = -1;  ///< exit status; -1: killed by a signal
  int signal = 0;
  bool fired = false;  ///< the fault happened
  bool timedOut = false;
  std::string output;
  std::vector<std::string> changes;      ///< in order, each with its number
  std::string faulted;                   ///< the change at which the fault happened
  std::vector<std::string> unjournaled;  ///< effects before the journal was synced to disk
  long points = 0;                       ///< changes that the fault counts
  long allocations = 0;                  ///< of memory, by all its processes
  long opens = 0;                        ///< of files, by all its processes
};

/// What a worker runs.
struct Program {
  std::vector<std::string> arguments;  ///< the first is `vfpass` or `hook`
  std::string input;
  long failingAllocation = -1;  ///< -1: none
  long failingOpen = -1;        ///< with it, there are no more descriptors; -1: none
};

}  // namespace vfpass::crash
