#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
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

}  // namespace vfpass::remote
