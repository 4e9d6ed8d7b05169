#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {

/// What came back from a guarded helper.
struct HelperReply {
  bool finished = false;  ///< false: the deadline passed, the helper is still at it
  int error = 0;          ///< errno of the call; ECHILD: the helper was killed
  std::string bytes;      ///< what was read
};

/// A guarded child (guarded_child.hpp) that stays for one call after another on files that it is
/// handed open: many short writes cost one process instead of two each. It ends with this object.
/// One that hangs is left to itself, and the next call starts another. Not for use by two threads.
/// During a call the helper is called `name` (task_name.hpp); 15 characters of it count.
class GuardedHelper {
 public:
  /// The most that one call writes or reads: a page, as sysfs has it.
  static constexpr std::size_t limit = 4096;

  /// One write(2) of `text`.
  HelperReply write(int file, std::string_view text, std::string_view name,
                    std::chrono::milliseconds deadline);
  /// One read(2) of up to a page.
  HelperReply read(int file, std::string_view name, std::chrono::milliseconds deadline);

  /// write() in two halves, so that several helpers can work at the same time: finishWrite() waits
  /// for what is left of the time.
  void beginWrite(int file, std::string_view text, std::string_view name);
  HelperReply finishWrite(std::chrono::milliseconds deadline);

 private:
  void send(int file, std::string_view request);
  HelperReply await(std::chrono::milliseconds allowance);
  HelperReply receive();
  void start();

  FileDescriptor socket_;  // not open: there is no helper
};

}  // namespace vfpass::host
