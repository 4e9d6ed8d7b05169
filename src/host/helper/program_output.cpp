#include "vfpass/host/program_output.hpp"

#include <fcntl.h>
#include <signal.h>
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
  const auto seconds =
      static_cast<unsigned>(std::chrono::duration_cast<std::chrono::seconds>(deadline).count() + 1);
  const auto execute = [&](int pipe) {
    // execve(2) keeps ignored signals ignored, and a pending alarm(2).
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(seconds);
    if (connectStreams(pipe)) {
      ::execve(arguments.front(), arguments.data(), environment.data());
    }
  };
  const auto reply = runGuarded(deadline, -1, execute, limit);
  return reply.finished ? std::optional(reply.bytes) : std::nullopt;
}

}  // namespace vfpass::host
