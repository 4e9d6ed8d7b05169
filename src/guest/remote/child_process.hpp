#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::remote {

/// A program that connects this host with another one, such as ssh. Nothing of it outlives this
/// object: it has a process group of its own, which is killed as a whole, even if it ignores
/// SIGTERM; the kernel kills the program if this process is killed. Its messages are read all the
/// time, so that it never blocks on them, and only the last of them are kept.
class ChildProcess {
 public:
  /// `stream` becomes its standard input and output. Finds the program by PATH. Throws Error if it
  /// cannot be started.
  ChildProcess(std::vector<std::string> command, int stream);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  /// The last line that it wrote to its standard error, escaped. Waits briefly, because a message
  /// may follow the end of the output.
  std::string lastMessage();

 private:
  void readMessages();
  void readSome();

  std::string program_;
  FileDescriptor errors_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string messages_;     // the end of them
  bool closed_ = false;      // no more messages follow
  std::size_t written_ = 0;  // bytes
  std::atomic<bool> stop_ = false;
  pid_t process_ = -1;
  std::thread reader_;
};

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
