#include "run_editor.hpp"

#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

bool isInPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

// The editor's own handling of SIGINT and SIGQUIT, and of SIGPIPE, which main ignores.
pid_t spawnShell(const std::array<const char*, 6>& arguments) {
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  const ScopeGuard destroy([&] { ::posix_spawnattr_destroy(&attributes); });
  sigset_t signals{};
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) {
    sigaddset(&signals, signal);
  }
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", nullptr, &attributes,
                                  const_cast<char* const*>(arguments.data()), environ);
  if (error != 0) {
    throw Error("cannot run /bin/sh: " + errnoText(error), "check /bin/sh");
  }
  return child;
}

// The status as a shell has it: 128 and the number of the signal that ended the child. nullopt: the
// child still runs.
std::optional<int> statusOf(pid_t child) {
  int status = 0;
  const pid_t ended = ::waitpid(child, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) {
    return std::nullopt;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Some shells start the editor as a process of its own, and end without it. The file exists with
// CONFIG_PROC_CHILDREN, which all distributions set.
std::vector<pid_t> withDescendants(pid_t process) {
  std::vector<pid_t> found{process};
  const std::string id = std::to_string(process);
  std::ifstream children("/proc/" + id + "/task/" + id + "/children");
  for (pid_t child = 0; children >> child;) {
    std::ranges::copy(withDescendants(child), std::back_inserter(found));
  }
  return found;
}

// Handles, not numbers: one that ends leaves its number to another process. One that has ended
// already may have none.
std::vector<FileDescriptor> handlesOf(const std::vector<pid_t>& processes) {
  std::vector<FileDescriptor> handles;
  for (const pid_t process : processes) {
    FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    if (handle) {
      handles.push_back(std::move(handle));
    }
  }
  return handles;
}

// Editors save the text in a file of their own at SIGTERM. One that ignores it would go on writing
// into a folder whose content vfpass has reported. They are in our process group, so each gets the
// signal by itself.
void endProcesses(const std::vector<pid_t>& processes) {
  constexpr std::chrono::seconds timeToEnd{3};
  const auto handles = handlesOf(processes);
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const FileDescriptor& handle : handles) {
      ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
    }
    const Deadline end(timeToEnd);
    for (const pid_t process : processes) {
      waitForExit({process}, end);
    }
  }
}

int waitFor(pid_t child) {
  constexpr std::chrono::milliseconds checkInterval{200};
  try {
    for (;;) {
      StopSignals::throwIfAsked();
      waitForExit({child}, Deadline(checkInterval));
      if (const auto status = statusOf(child)) {
        return *status;
      }
    }
  } catch (const Cancelled&) {
    endProcesses(withDescendants(child));
    static_cast<void>(statusOf(child));
    throw;
  }
}

std::string describeEnd(int status) {
  const char* signal = status > 128 ? ::sigabbrev_np(status - 128) : nullptr;
  return signal == nullptr ? "ended with exit status " + std::to_string(status)
                           : "was ended by SIG" + std::string(signal);
}

/// Ignores a signal during its lifetime. Restores also the flags, which signal(2) would lose:
/// without SA_RESETHAND a second Ctrl-C would not end vfpass (StopSignals).
class IgnoredSignal {
 public:
  explicit IgnoredSignal(int signal) : signal_(signal) {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(signal_, &ignore, &before_);
  }
  ~IgnoredSignal() { ::sigaction(signal_, &before_, nullptr); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  int signal_;
  struct sigaction before_ = {};
};

/// The mode of the terminal, which an editor that crashes does not restore.
class TerminalMode {
 public:
  TerminalMode() : known_(::tcgetattr(STDIN_FILENO, &mode_) == 0) {}
  void restore() const {
    if (known_) {
      ::tcsetattr(STDIN_FILENO, TCSADRAIN, &mode_);
    }
  }

 private:
  termios mode_{};
  bool known_;
};

}  // namespace

std::string editorCommand() {
  for (const char* variable : {"VISUAL", "EDITOR"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && !trim(value).empty()) {
      return value;
    }
  }
  return isInPath("editor") ? "editor" : "vi";
}

void runEditor(const std::string& editor, const std::filesystem::path& file) {
  // As with system(3): Ctrl-C in the editor is for the editor.
  const IgnoredSignal interrupt(SIGINT);
  const IgnoredSignal quit(SIGQUIT);
  const std::string script = editor + " \"$@\"";
  const TerminalMode terminal;
  ScopeGuard restoreTerminal([&] { terminal.restore(); });
  const int status = waitFor(spawnShell({"sh", "-c", script.c_str(), "sh", file.c_str(), nullptr}));
  if (status == 0) {
    restoreTerminal.disarm();
  } else {
    throw Error("the editor `" + printable(editor) + "` " + describeEnd(status),
                "set VISUAL or EDITOR to an editor, then run the command again");
  }
}

}  // namespace vfpass::commands
