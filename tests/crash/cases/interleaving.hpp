#pragma once

#include <functional>
#include <string>
#include <vector>

#include "world/scheduler.hpp"

namespace vfpass::crash {

/// Several processes at once on one host. A gate decides which request waits, so a test can stop a
/// process at a certain request.
class Interleaving {
 public:
  using Process = Scheduler::Process;

  explicit Interleaving(World& world);

  /// Whether a process may proceed with its request. At first every one may.
  std::function<bool(const Process&)> gate = [](const Process&) { return true; };

  /// Starts `vfpass WORDS`; the name is the command.
  Process& launch(const std::vector<std::string>& words);
  Process& launch(const Program& program, const std::string& name);
  /// Lets the first process that can go on do so until the condition holds. Throws if none can.
  void runUntil(const std::function<bool()>& condition);
  void runToEnd();
  /// Sends SIGKILL to a process.
  void kill(Process& process);

  [[nodiscard]] static bool waitsFor(const Process& process, const std::string& kind) {
    return !process.ended() && process.request().at(0) == kind;
  }
  /// Waits for the lock of another process.
  [[nodiscard]] bool isBlocked(const Process& process) const {
    return waitsFor(process, "lock") && !scheduler.isReady(process);
  }

  Scheduler scheduler;

 private:
  Process* nextProcess();
  static void printEnd(const Process& process);

  std::vector<Process*> processes_;
};

}  // namespace vfpass::crash
