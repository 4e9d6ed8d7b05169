#include "terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <ostream>
#include <sstream>

#include "commands.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/result_report.hpp"

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

namespace {

constexpr const char* defaultSeconds = "2";
constexpr unsigned longestSeconds = 3600;
constexpr const char* clearScreen = "\x1b[H\x1b[2J";

std::chrono::seconds intervalOf(const std::string& text) {
  unsigned seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stop != end || seconds < 1 || seconds > longestSeconds) {
    throw Error("--watch=" + printable(text) + ": not a number of seconds",
                "specify 1 to " + std::to_string(longestSeconds) + ", as in --watch=5",
                ExitCode::badInput);
  }
  return std::chrono::seconds(seconds);
}

std::string timeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text, size};
}

// One reading in a session of its own, because a session keeps what it has read. Warnings are part
// of the text, but not of a document.
std::string readOnce(const GlobalOptions& options, const Runner& show) {
  std::ostringstream out;
  std::ostringstream warnings;
  Session session(options, out, options.json ? std::cerr : warnings);
  if (callsInProgress != 0) {  // abandoned by an earlier reading
    session.assumeSilence();
  }
  show(session);
  return out.str() + warnings.str();
}

std::string readAgain(const GlobalOptions& options, const Runner& show) {
  try {
    return readOnce(options, show);
  } catch (const Error& error) {
    if (options.json) {
      std::ostringstream document;
      report::writeError(document, error);
      return document.str();
    }
    return "vfpass: " + printableLines(withRemedy(error)) + '\n';
  }
}

std::size_t terminalRows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

// False: nobody reads the output any more. poll(2) reports that whatever it is asked for.
bool waitForInterval(std::chrono::seconds interval) {
  const Deadline deadline(interval);
  while (!deadline.over()) {
    pollfd output{STDOUT_FILENO, 0, 0};
    if (::poll(&output, 1, deadline.pollTimeout()) == 1) {
      return false;
    }
  }
  return true;
}

}  // namespace

void addWatch(CLI::App& command, std::string& watch) {
  command
      .add_flag("--watch{" + std::string(defaultSeconds) + "}", watch,
                "Show it again and again until Ctrl-C, every 2 seconds or --watch=SECONDS")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

std::string clipped(const std::string& text, std::size_t rows) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (lines <= rows || rows == 0) {
    return text;
  }
  std::size_t end = 0;
  for (std::size_t line = 1; line < rows; ++line) {
    end = text.find('\n', end) + 1;
  }
  return text.substr(0, end) + "(" + std::to_string(lines - rows + 1) + " more lines)\n";
}

ExitCode showOrWatch(Session& session, const std::string& watch, const Runner& show) {
  if (watch.empty()) {
    return show(session);
  }
  const auto interval = intervalOf(watch);
  const GlobalOptions& options = session.options();
  const bool terminal = isScreen(STDOUT_FILENO) && !options.json;
  std::string shown;
  std::string text = readOnce(options, show);
  while (true) {
    if (terminal) {
      session.out() << clearScreen << "every " << watch << " s, " << timeNow()
                    << "; Ctrl-C ends it\n\n"
                    << clipped(text, terminalRows() - std::min<std::size_t>(terminalRows(), 3))
                    << std::flush;
    } else if (text != shown) {
      session.out() << (options.json ? "" : timeNow() + "\n") << text << (options.json ? "" : "\n")
                    << std::flush;
    }
    shown = std::move(text);
    if (!session.out() || !waitForInterval(interval)) {
      return ExitCode::done;
    }
    text = readAgain(options, show);
  }
}

}  // namespace vfpass::commands
