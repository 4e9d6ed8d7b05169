#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "child_process.hpp"

namespace vfpass::remote {

/// A child process that replies to each line on its standard input with one line on its standard
/// output. Neither its replies nor its messages are trusted. It ends with this object.
class LineProcess {
 public:
  /// Called while waiting, every 100 ms; may throw Cancelled.
  using Checkpoint = std::function<void()>;

  /// Finds the program by PATH. Throws Error if it cannot be started.
  LineProcess(const std::vector<std::string>& command, Checkpoint checkpoint);

  /// Sends one line and returns the reply, without its newline. Throws Error if the process ends,
  /// does not reply in time, or its reply is longer than `limit`; the message contains the last
  /// line that it wrote to its standard error.
  std::string ask(const std::string& line, std::chrono::milliseconds timeout, std::size_t limit);

 private:
  void send(const std::string& line);
  /// Reads what is there; false at the end of the output.
  bool receive();
  [[noreturn]] void fail(const std::string& what);

  std::string program_;
  Checkpoint checkpoint_;
  FileDescriptor stream_;  ///< the process's standard input and output
  std::string received_;
  std::optional<ChildProcess> process_;
};

}  // namespace vfpass::remote
