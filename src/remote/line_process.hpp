#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::remote {

/// A child process that replies to each line on its standard input with one line on its standard
/// output. Neither its replies nor its messages are trusted. It ends with this object.
class LineProcess {
 public:
  /// Called while waiting, at least once per second; may throw Cancelled.
  using Checkpoint = std::function<void()>;

  /// Finds the program by PATH. Throws Error if it cannot be started.
  LineProcess(const std::vector<std::string>& command, Checkpoint checkpoint);
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;
  ~LineProcess();

  /// Sends one line and returns the reply, without its newline. Throws Error if the process ends,
  /// does not reply in time, or its reply is longer than `limit`; the message contains the last
  /// line that it wrote to its standard error.
  std::string ask(const std::string& line, std::chrono::milliseconds timeout, std::size_t limit);

 private:
  void send(const std::string& line);
  /// Reads what is there; false at the end of the output.
  bool receive();
  void readErrors();
  [[noreturn]] void fail(const std::string& what);

  std::string program_;
  Checkpoint checkpoint_;
  FileDescriptor stream_;  ///< the process's standard input and output
  FileDescriptor errors_;
  std::string received_;
  std::string message_;
  pid_t process_ = -1;
};

}  // namespace vfpass::remote
