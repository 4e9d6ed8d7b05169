#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "worker/wire.hpp"
#include "world/fault.hpp"

namespace vfpass::crash {

/// A process that runs the command line or the hook of vfpass, with a directory as its root. It is
/// killed by the destructor if it still runs.
class Worker {
 public:
  Worker(const std::filesystem::path& root, const Program& program);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  enum class Event { request, ended, timeout };

  /// Waits until a request arrives, all its processes have ended, or the time is over. Read the
  /// request with request().
  Event wait(std::chrono::milliseconds timeout);
  [[nodiscard]] const Message& request() const { return request_; }
  void answer(const Message& reply);

  /// Sends SIGKILL to all its processes and returns once they have ended.
  void kill();

  /// To poll for the next event.
  [[nodiscard]] int descriptor() const { return socket_; }

  /// After the end: sets exit status, signal and output.
  void complete(Result& result);

 private:
  void reap();

  pid_t process_ = -1;
  int socket_ = -1;
  int output_ = -1;
  int status_ = 0;
  bool reaped_ = false;
  Message request_;
};

}  // namespace vfpass::crash
