// Runs a target without libFuzzer, once with each file of its corpus, then with mutations of them:
// replay DIRECTORY [--mutate EXECUTIONS | --seconds SECONDS] [--seed SEED]. A seed (default: 1)
// always gives the same mutations. The input of a violation is left in `violation-input`.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/mutator.hpp"
#include "fuzz/target.hpp"

// In the sanitizers' libraries only.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

// GCC's UBSan does not call ASan's callback; it reads this.
extern "C" const char* __ubsan_default_options();

extern "C" const char* __ubsan_default_options() { return "abort_on_error=1"; }

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Limits {
  std::uint64_t executions = 0;
  Clock::duration time{};
  std::uint64_t seed = 1;
};

std::string current;

// The process is about to die: what this allocates need not be sound.
void keepInput() {
  std::ofstream("violation-input", std::ios::binary) << current;
  std::fprintf(stderr, "the input is in violation-input (%zu bytes)\n", current.size());
}

void keepInputOnAbort(int signal) {
  std::signal(signal, SIG_DFL);
  keepInput();
  std::raise(signal);
}

void watchForViolations() {
  std::signal(SIGABRT, keepInputOnAbort);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keepInput);
  }
}

std::optional<Limits> limitsFrom(int count, char** arguments) {
  Limits limits;
  for (int at = 2; at < count; at += 2) {
    const std::string option = arguments[at];
    const std::uint64_t number = at + 1 < count ? std::strtoull(arguments[at + 1], nullptr, 10) : 0;
    if (number == 0) {
      return std::nullopt;
    }
    if (option == "--mutate") {
      limits.executions = number;
      limits.time = Clock::duration::max();
    } else if (option == "--seconds") {
      limits.executions = UINT64_MAX;
      limits.time = std::chrono::seconds(number);
    } else if (option == "--seed") {
      limits.seed = number;
    } else {
      return std::nullopt;
    }
  }
  return count < 2 ? std::nullopt : std::optional(limits);
}

std::vector<std::string> replay(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // mutations depend on the order
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    current.assign(std::istreambuf_iterator<char>(file), {});
    std::printf("%s\n", path.c_str());  // the last name before a crash is the culprit
    std::fflush(stdout);
    vfpass::fuzz::runTarget(current);
    inputs.push_back(current);
  }
  return inputs;
}

std::uint64_t mutate(const std::vector<std::string>& inputs, const Limits& limits) {
  vfpass::fuzz::Mutator mutator(inputs, limits.seed);
  const auto start = Clock::now();
  std::uint64_t executions = 0;
  while (executions < limits.executions && Clock::now() - start < limits.time) {
    current = mutator.next();
    vfpass::fuzz::runTarget(current);
    ++executions;
  }
  return executions;
}

}  // namespace

int main(int count, char** arguments) {
  const auto limits = limitsFrom(count, arguments);
  if (!limits) {
    std::fputs("usage: replay DIRECTORY [--mutate EXECUTIONS | --seconds SECONDS] [--seed SEED]\n",
               stderr);
    return 2;
  }
  watchForViolations();
  const auto inputs = replay(arguments[1]);
  std::printf("%zu files\n", inputs.size());
  if (inputs.empty()) {
    return 1;
  }
  const auto executions = mutate(inputs, *limits);
  std::printf("%llu mutations\n", static_cast<unsigned long long>(executions));
  return limits->executions > 0 && executions == 0 ? 1 : 0;
}
