#include "trial_run.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "vfpass/base/process_exit.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"

namespace vfpass::install {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& program, const std::string& reason) {
  throw Error("hook program " + printable(program.native()) + ": " + reason +
                  "; libvirtd would kill every running VM at its next start",
              "repair or reinstall it, then run `vfpass hook install` again", ExitCode::refused);
}

// Returns the pid. posix_spawn also reports errors of execve.
pid_t start(const fs::path& program) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  }
  std::string name = program.native();
  std::array<char*, 2> arguments{name.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, name.c_str(), &files, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    refuse(program, "cannot be started: " + errnoText(error));
  }
  return pid;
}

// False if the process had to be killed.
bool waitForEnd(pid_t pid, int& status) {
  const bool ended = waitForExit({pid}, Deadline(deadlines::hookTrial));
  if (!ended) {
    ::kill(pid, SIGKILL);
  }
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

}  // namespace

void requireRuns(const fs::path& program) {
  int status = 0;
  if (!waitForEnd(start(program), status)) {
    refuse(program, "does not exit within " + std::to_string(deadlines::hookTrial.count() / 1000) +
                        " seconds");
  }
  if (WIFSIGNALED(status)) {
    refuse(program, "killed by signal " + std::to_string(WTERMSIG(status)));
  }
  // The dynamic loader exits with 127 if a library is missing.
  if (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127) {
    refuse(program, "cannot be loaded: exit status " + std::to_string(WEXITSTATUS(status)));
  }
}

}  // namespace vfpass::install
