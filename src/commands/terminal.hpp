#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::commands {

/// A variable of the environment; nullopt if it is not set.
using EnvironmentVariable = std::function<std::optional<std::string>(const char* name)>;

/// The pager's words: $VFPASS_PAGER, otherwise $PAGER, otherwise less. Empty for none: the variable
/// is empty or `cat`, or the terminal cannot move its cursor. `elevated`: root's rights were given
/// to another user, as by sudo(8); then it is less, whose secure mode runs no shell, or nothing.
std::vector<std::string> pagerWords(const EnvironmentVariable& variable, bool elevated);

/// Shows what this process writes to standard output through a pager on the terminal.
class Pager {
 public:
  /// `out` writes to standard output, and outlives this object.
  explicit Pager(std::ostream& out) : out_(out) {}
  ~Pager() { finish(); }
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// Does nothing where standard output is not a terminal, or the pager cannot be started.
  void start();
  /// Waits until the user has left the pager. Output that was not read is not an error.
  void finish();

 private:
  /// Ctrl-C on the terminal is for the pager meanwhile.
  void ignoreInterrupts();

  std::ostream& out_;
  pid_t process_ = -1;
  FileDescriptor terminal_;  ///< standard output, while the pager runs
  struct sigaction interrupt_ = {};
  struct sigaction quit_ = {};
};

/// As many of the lines as fit on a terminal of `rows`, with a last one for the others.
std::string clipped(const std::string& text, std::size_t rows);

}  // namespace vfpass::commands
