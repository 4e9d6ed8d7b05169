#include "run_editor.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>

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

int waitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string editorCommand() {
  for (const char* variable : {"VISUAL", "EDITOR"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      return value;
    }
  }
  return isInPath("editor") ? "editor" : "vi";
}

void runEditor(const std::string& editor, const std::filesystem::path& file) {
  // As with system(3): Ctrl-C in the editor is for the editor.
  const auto interrupt = std::signal(SIGINT, SIG_IGN);
  const auto quit = std::signal(SIGQUIT, SIG_IGN);
  const ScopeGuard restore([&] {
    std::signal(SIGINT, interrupt);
    std::signal(SIGQUIT, quit);
  });
  const std::string script = editor + " \"$@\"";
  const int status = waitFor(spawnShell({"sh", "-c", script.c_str(), "sh", file.c_str(), nullptr}));
  if (status != 0) {
    throw Error(
        "the editor `" + printable(editor) + "` ended with exit status " + std::to_string(status),
        "set VISUAL or EDITOR to an editor, then run the command again");
  }
}

}  // namespace vfpass::commands
