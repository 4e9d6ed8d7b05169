#include "own_processes.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "vfpass/base/process_exit.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::session {
namespace {

// Enough to kill a probe in the guest and remove its directory.
constexpr std::chrono::seconds endsWithin{10};
constexpr const char* program = "/proc/self/exe";

std::vector<std::string> ownArguments() {
  std::vector<std::string> arguments;
  std::ifstream line("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(line, word, '\0');) {
    arguments.push_back(word);
  }
  return arguments;
}

}  // namespace

OwnProcesses::~OwnProcesses() {
  for (const auto& [process, about] : running_) {
    ::kill(process, SIGTERM);
  }
  const Deadline deadline(endsWithin);
  while (!running_.empty()) {
    if (!takeEnded(deadline.left()) && deadline.over()) {
      for (const auto& [process, about] : running_) {
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
      }
      running_.clear();
    }
  }
}

void OwnProcesses::start(const Uuid& domain) {
  std::vector<std::string> words = ownArguments();
  words.push_back(toString(domain));
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t process = ::_Fork();
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() == parent) {
      ::execv(program, arguments.data());
    }
    ::_exit(1);
  }
  if (process < 0) {
    throw Error("cannot start a process: " + errnoText(errno));
  }
  running_.emplace(process, Process{domain, Deadline(longest_)});
}

std::optional<EndedVerification> OwnProcesses::takeEnded(std::chrono::milliseconds timeout) {
  std::vector<pid_t> processes;
  for (const auto& [process, about] : running_) {
    processes.push_back(process);
  }
  waitForExit(processes, Deadline(timeout));
  return reap();
}

// Also kills those that have run for too long.
std::optional<EndedVerification> OwnProcesses::reap() {
  for (const auto& [process, about] : running_) {
    int status = 0;
    const pid_t found = ::waitpid(process, &status, WNOHANG);
    if (found != 0) {  // an error means that this process ignores SIGCHLD
      const EndedVerification ended{about.domain,
                                    found < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)};
      running_.erase(process);
      return ended;
    }
    if (about.deadline.over()) {
      ::kill(process, SIGKILL);
    }
  }
  return std::nullopt;
}

}  // namespace vfpass::session
