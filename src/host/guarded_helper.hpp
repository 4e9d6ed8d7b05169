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
class GuardedHelper {
 public:
  /// The most that one call writes or reads: a page, as sysfs has it.
  static constexpr std::size_t limit = 4096;

  /// One write(2) of `text`.
  HelperReply write(int file, std::string_view text, std::chrono::milliseconds deadline);
  /// One read(2) of up to a page.
  HelperReply read(int file, std::chrono::milliseconds deadline);

 private:
  HelperReply call(int file, std::string_view request, std::chrono::milliseconds allowance);
  void send(int file, std::string_view request);
  HelperReply receive();
  void start();

  FileDescriptor socket_;  // not open: there is no helper
};

}  // namespace vfpass::host
