#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {

/// The reply of a guarded helper.
struct HelperReply {
  bool finished = false;  ///< false: the deadline passed and the helper is still running
  int error = 0;          ///< errno of the call; ECHILD: the helper was killed
  std::string bytes;      ///< the bytes read
};

/// A guarded child (guarded_child.hpp) that serves a series of calls on open files passed to it:
/// many short writes need one process instead of two each. It ends with this object. A helper that
/// hangs is abandoned, and the next call starts another one. Not thread-safe.
/// During a call the helper has the mark `name` (call_mark.hpp), at most 15 characters.
class GuardedHelper {
 public:
  /// Maximum length of a write or read: one page, the limit of sysfs.
  static constexpr std::size_t limit = 4096;

  /// One write(2) of `text`.
  HelperReply write(int file, std::string_view text, std::string_view name,
                    std::chrono::milliseconds deadline);
  /// One read(2) of up to a page.
  HelperReply read(int file, std::string_view name, std::chrono::milliseconds deadline);

  /// write() in two halves, so that several helpers can work in parallel: finishWrite() waits for
  /// the rest of the time.
  void beginWrite(int file, std::string_view text, std::string_view name);
  HelperReply finishWrite(std::chrono::milliseconds deadline);

 private:
  void send(int file, std::string_view request);
  HelperReply await(std::chrono::milliseconds timeout);
  HelperReply receive();
  void start();

  FileDescriptor socket_;  // closed: there is no helper
};

}  // namespace vfpass::host
