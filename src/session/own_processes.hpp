#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "vfpass/base/deadline.hpp"
#include "vfpass/session/started_queue.hpp"

namespace vfpass::session {

/// Further processes of this program, with its own arguments and a VM. None outlives this object:
/// they get SIGTERM and, 10 s later, SIGKILL.
class OwnProcesses {
 public:
  /// None may run longer than `longest`.
  explicit OwnProcesses(std::chrono::seconds longest) : longest_(longest) {}
  OwnProcesses(const OwnProcesses&) = delete;
  OwnProcesses& operator=(const OwnProcesses&) = delete;
  ~OwnProcesses();

  /// Throws Error.
  void start(const Uuid& domain);
  /// One that has ended; `completed` if its exit status was 0. Waits for one up to `timeout`.
  std::optional<EndedVerification> takeEnded(std::chrono::milliseconds timeout);

 private:
  struct Process {
    Uuid domain;
    Deadline deadline;
  };

  std::optional<EndedVerification> reap();

  std::chrono::seconds longest_;
  std::map<pid_t, Process> running_;
};

}  // namespace vfpass::session
