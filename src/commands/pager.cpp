#include "pager.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ostream>
#include <sstream>

namespace vfpass::commands {
namespace {

std::optional<std::string> ownVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// sudo(8), doas(1) and pkexec(1) set these for what they run.
bool isElevated() {
  return ::geteuid() == 0 && (::getuid() != 0 || ownVariable("SUDO_UID") ||
                              ownVariable("DOAS_USER") || ownVariable("PKEXEC_UID"));
}

// The environment of the pager: less ends at once if the text fits (F), shows colours (R) and
// leaves the text on the terminal (X), unless the user has chosen otherwise.
std::vector<std::string> pagerEnvironment(bool elevated) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    variables.emplace_back(*each);
  }
  const auto setIfMissing = [&](const char* name, const std::string& value) {
    if (!ownVariable(name)) {
      variables.push_back(std::string(name) + "=" + value);
    }
  };
  setIfMissing("LESS", "FRX");
  setIfMissing("LESSCHARSET", "utf-8");
  setIfMissing("LV", "-c");
  if (elevated) {
    std::erase_if(variables, [](const std::string& each) {
      return each.starts_with("LESSSECURE");  // also LESSSECURE_ALLOW
    });
    variables.emplace_back("LESSSECURE=1");  // less(1), SECURITY
  }
  return variables;
}

std::vector<char*> pointersTo(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& each : words) {
    pointers.push_back(each.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// What posix_spawn(3) does in the child: the pipe becomes its input, SIGPIPE has its default
// action.
class PagerSpawn {
 public:
  explicit PagerSpawn(int input) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    ::posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~PagerSpawn() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  PagerSpawn(const PagerSpawn&) = delete;
  PagerSpawn& operator=(const PagerSpawn&) = delete;

  // The process, or -1.
  pid_t run(std::vector<std::string> words, std::vector<std::string> environment) {
    pid_t process = -1;
    const auto arguments = pointersTo(words);
    const auto variables = pointersTo(environment);
    const int error = ::posix_spawnp(&process, arguments.front(), &actions_, &attributes_,
                                     arguments.data(), variables.data());
    return error == 0 ? process : -1;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::vector<std::string> pagerWords(const EnvironmentVariable& variable, bool elevated) {
  const auto terminal = variable("TERM");
  if (!terminal || terminal->empty() || *terminal == "dumb") {
    return {};
  }
  const auto own = variable("VFPASS_PAGER");
  const auto chosen = own ? own : variable("PAGER");
  std::istringstream text(chosen.value_or("less"));
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  if (words.empty() || words.front() == "cat") {
    return {};
  }
  return elevated ? std::vector<std::string>{"less"} : words;
}

void Pager::start() {
  if (process_ >= 0 || ::isatty(STDOUT_FILENO) != 1) {
    return;
  }
  const bool elevated = isElevated();
  auto words = pagerWords(ownVariable, elevated);
  std::array<int, 2> ends{};
  if (words.empty() || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return;
  }
  const FileDescriptor readEnd(ends[0]);
  const FileDescriptor writeEnd(ends[1]);
  out_.flush();
  terminal_ = FileDescriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  process_ =
      !terminal_ ? -1 : PagerSpawn(readEnd.get()).run(std::move(words), pagerEnvironment(elevated));
  if (process_ < 0) {
    return;
  }
  ignoreInterrupts();
  ::dup2(writeEnd.get(), STDOUT_FILENO);
}

void Pager::ignoreInterrupts() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &interrupt_);
  ::sigaction(SIGQUIT, &ignore, &quit_);
}

void Pager::finish() {
  if (process_ < 0) {
    return;
  }
  out_.flush();
  ::dup2(terminal_.get(), STDOUT_FILENO);  // closes the pipe: the pager sees the end
  terminal_ = FileDescriptor();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGQUIT, &quit_, nullptr);
  out_.clear();  // of the pipe that the pager has closed
}

}  // namespace vfpass::commands
