// interleave RUNS STDIN_FILE COMMAND [ARGUMENT...] [-- COMMAND [ARGUMENT...]]...
//
// Runs the commands in turn, RUNS times each after a tenth as many warm-up runs, with the file as
// stdin, and prints a line for each: median, 10th and 90th percentile of the time from before the
// spawn to after the wait, in microseconds, and the median's ratio to the first command's.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

struct Command {
  std::vector<char*> arguments;  // null-terminated
  std::vector<double> microseconds;
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

double timeOnce(const Command& command, const char* input) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  char* const* arguments = command.arguments.data();
  pid_t process = 0;
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  if (const int error =
          posix_spawn(&process, arguments[0], &actions, nullptr, arguments, environ)) {
    fail(std::strerror(error), arguments[0]);
  }
  waitpid(process, &status, 0);
  const auto end = std::chrono::steady_clock::now();
  posix_spawn_file_actions_destroy(&actions);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail("did not exit with status 0", arguments[0]);
  }
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

// The program's name without its directory.
const char* nameOf(const Command& command) {
  const char* slash = std::strrchr(command.arguments[0], '/');
  return slash == nullptr ? command.arguments[0] : slash + 1;
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
    std::printf("%-24s median %6.0f us  p10 %6.0f  p90 %6.0f  ratio %.2f\n", nameOf(command),
                median, percentile(command.microseconds, 10), percentile(command.microseconds, 90),
                median / first);
  }
  return 0;
}
