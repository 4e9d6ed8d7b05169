#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace vfpass::hook {

/// Ends the process after this time with one line on stderr, this entry in the journal
/// (events/journal_event.hpp) and this exit code: libvirt has no timeout for hooks and holds the
/// domain's lock while one runs. A worker is killed first.
void startWatchdog(std::chrono::seconds timeout, int exitCode, const std::string& entry);

/// Runs `work` in a child process, passes on what that writes to stderr, and returns its result.
/// Meanwhile this process only waits: a child that hangs in the kernel, such as in open(2) on a
/// frozen file system, cannot be killed, and SIGALRM does not interrupt it either. The child has
/// none of libvirt's descriptors, because libvirt waits until every copy of the hook's stderr is
/// closed. It dies with this process. Throws Error if it cannot be started or is killed.
int superviseWorker(const std::function<int()>& work);

/// Drops privileges that the hook never needs, before it parses untrusted XML. For this process and
/// its children this drops all capabilities except those in supervisor.cpp, also from the bounding
/// set (modprobe gets CAP_SYS_MODULE, which is not effective here), and disables new privileges
/// through exec, core dumps, and ptrace by others. Returns 0, or the errno of the first call that
/// failed; the other calls are made all the same.
int reducePrivileges() noexcept;

/// A text that the worker leaves to its supervisor. Not a pipe: the worker may block in the kernel
/// for good, and must then hold nothing that libvirt reads, and the text may be larger than what a
/// pipe holds. Anonymous memory has no path that an AppArmor profile would have to permit.
class SharedText {
 public:
  /// Memory is used only for what is put. Throws Error.
  SharedText();
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  ~SharedText();

  /// In the worker. Throws Error for more than 32 MiB.
  void put(std::string_view text);

  /// In the supervisor, after the worker has ended: the text, empty if none was put.
  [[nodiscard]] std::string_view get() const;

 private:
  struct Memory;
  Memory* memory_;
};

}  // namespace vfpass::hook
