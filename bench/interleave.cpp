// interleave RUNS STDIN_FILE [!] COMMAND [ARGUMENT...] [-- [!] COMMAND [ARGUMENT...]]...
//
// Runs the commands in turn, RUNS times each after a tenth as many warm-up runs, with the file as
// stdin, and prints a line for each: median, 10th and 90th percentile of the time from before the
// spawn to after the wait, in microseconds, the median's ratio to the first command's, and the
// largest resident set of all its runs. A command has to succeed, or with `!` to fail with status
// 1, 2 or 3; its stderr is then hidden.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Command {
  std::vector<char*> arguments;  // null-terminated
  bool mustFail = false;
  std::vector<double> microseconds;
  long peakKib = 0;
};

[[noreturn]] void fail(const char* what, const char* object) {
  std::fprintf(stderr, "interleave: %s: %s\n", object, what);
  std::exit(2);
}

std::vector<Command> readCommands(int argc, char** argv) {
  std::vector<Command> commands(1);
  for (int i = 3; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") {
      commands.emplace_back();
    } else if (std::string_view(argv[i]) == "!" && commands.back().arguments.empty()) {
      commands.back().mustFail = true;
    } else {
      commands.back().arguments.push_back(argv[i]);
    }
  }
  for (Command& command : commands) {
    if (command.arguments.empty()) {
      fail("missing command", "usage");
    }
    command.arguments.push_back(nullptr);
  }
  return commands;
}

// The program's name and its arguments, all without their directories.
std::string nameOf(const Command& command) {
  std::string name;
  for (const char* argument : command.arguments) {
    if (argument != nullptr) {
      const char* slash = std::strrchr(argument, '/');
      name += (name.empty() ? "" : " ") + std::string(slash == nullptr ? argument : slash + 1);
    }
  }
  return name;
}

double timeOnce(Command& command, const char* input) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (command.mustFail) {
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  }
  char* const* arguments = command.arguments.data();
  pid_t process = 0;
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  if (const int error =
          posix_spawn(&process, arguments[0], &actions, nullptr, arguments, environ)) {
    fail(std::strerror(error), arguments[0]);
  }
  rusage usage = {};
  wait4(process, &status, 0, &usage);
  const auto end = std::chrono::steady_clock::now();
  posix_spawn_file_actions_destroy(&actions);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  command.peakKib = std::max(command.peakKib, usage.ru_maxrss);
  if (command.mustFail ? code < 1 || code > 3 : code != 0) {
    fail(("unexpected exit status " + std::to_string(code)).c_str(), nameOf(command).c_str());
  }
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

// `values` must be sorted.
double percentile(const std::vector<double>& values, std::size_t percent) {
  return values[(values.size() - 1) * percent / 100];
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 3 ? std::atoi(argv[1]) : 0;
  if (runs < 1) {
    fail("RUNS STDIN_FILE COMMAND [ARGUMENT...] [-- COMMAND...]", "usage");
  }
  std::vector<Command> commands = readCommands(argc, argv);
  for (int run = -runs / 10; run < runs; ++run) {
    for (Command& command : commands) {
      const double took = timeOnce(command, argv[2]);
      if (run >= 0) {
        command.microseconds.push_back(took);
      }
    }
  }
  double first = 0;
  for (Command& command : commands) {
    std::sort(command.microseconds.begin(), command.microseconds.end());
    const double median = percentile(command.microseconds, 50);
    first = first == 0 ? median : first;
    std::printf("%-28.28s median %6.0f us  p10 %6.0f  p90 %6.0f  ratio %.2f  peak %.1f MiB\n",
                nameOf(command).c_str(), median, percentile(command.microseconds, 10),
                percentile(command.microseconds, 90), median / first,
                static_cast<double>(command.peakKib) / 1024);
  }
  return 0;
}
