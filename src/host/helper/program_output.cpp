#include "vfpass/host/program_output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>

#include "helper/guarded_child.hpp"

namespace vfpass::host {
namespace {

constexpr int firstFree = STDERR_FILENO + 1;

// Runs in the guarded child, where the standard descriptors are closed. False when no descriptor is
// available.
bool connectStreams(int pipe) {
  const int writing = pipe < firstFree ? ::fcntl(pipe, F_DUPFD_CLOEXEC, firstFree) : pipe;
  if (writing < 0) {
    return false;
  }
  ::close(STDIN_FILENO);
  return ::open("/dev/null", O_RDONLY) == STDIN_FILENO && ::dup2(writing, STDOUT_FILENO) >= 0 &&
         ::dup2(writing, STDERR_FILENO) >= 0;
}

}  // namespace

std::optional<std::string> programOutput(const std::vector<std::string>& command,
                                         std::chrono::milliseconds deadline, std::size_t limit) {
  if (command.empty() || ::access(command.front().c_str(), X_OK) != 0) {
    return std::nullopt;
  }
  std::vector<char*> arguments;
  for (const std::string& each : command) {
    arguments.push_back(const_cast<char*>(each.c_str()));
  }
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  std::string locale = "LC_ALL=C";
  const std::array environment{path.data(), locale.data(), static_cast<char*>(nullptr)};
  const auto execute = [&](int pipe) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if a signal ends this process while it waits
    ::signal(SIGPIPE, SIG_DFL);          // execve(2) keeps ignored signals ignored
    if (connectStreams(pipe)) {
      ::execve(arguments.front(), arguments.data(), environment.data());
    }
  };
  const auto reply = runGuarded(deadline, -1, execute, limit);
  if (!reply.finished || reply.bytes.size() > limit) {
    ::kill(-reply.child, SIGKILL);  // with whatever it has started
  }
  return reply.finished ? std::optional(reply.bytes) : std::nullopt;
}

}  // namespace vfpass::host
