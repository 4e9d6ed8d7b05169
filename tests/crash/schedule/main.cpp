// Several vfpass processes in every order that a seed can give. See docs/reliability.md.
#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>
#include <random>

#include "schedule/explorer.hpp"
#include "world/run_as_root.hpp"
#include "world/scratch_directory.hpp"

namespace vfpass::crash {
namespace {

struct Options {
  std::uint32_t seed = 0;
  long runs = std::numeric_limits<long>::max();
  long seconds = 60;
  bool pairs = false;
  unsigned part = 0;
  unsigned parts = 1;
  Steps steps;
  bool twice = false;
  std::string schedule;
};

int run(const Options& options) {
  const ScratchDirectory scratch;
  Explorer explorer(scratch.path(), options.twice);
  if (!options.schedule.empty()) {
    explorer.replay(parseSchedule(options.schedule));
    return 0;
  }
  if (options.pairs) {
    explorer.explorePairs(options.part, options.parts, options.steps);
  } else {
    std::cout << "seed " << options.seed << std::endl;
    explorer.explore(options.seed, options.runs, std::chrono::seconds(options.seconds));
  }
  explorer.print();
  return explorer.violations() == 0 ? 0 : 1;
}

int parseAndRun(int argc, char** argv) {
  Options options;
  options.seed = std::random_device()() % 1'000'000'000U;
  CLI::App app("Run several vfpass processes on a simulated host, in an order that a seed gives");
  app.add_option("--seed", options.seed, "Seed of the first schedule");
  app.add_option("--runs", options.runs, "Number of schedules");
  app.add_option("--seconds", options.seconds, "Time for random schedules (60)");
  app.add_flag("--pairs", options.pairs,
               "Every order in which one of two actors stands still at one step");
  app.add_option("--part", options.part, "With --pairs: only this part, from 0");
  app.add_option("--parts", options.parts, "With --pairs: the number of parts");
  app.add_option("--first-step", options.steps.first, "With --pairs: the first step, from 0");
  app.add_option("--every", options.steps.every, "With --pairs: only every so many steps")
      ->check(CLI::PositiveNumber);
  app.add_flag("--twice", options.twice, "Repeat each schedule and compare all steps");
  app.add_option("--replay", options.schedule, "Run this schedule and print its log");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace
}  // namespace vfpass::crash

int main(int argc, char** argv) {
  using namespace vfpass::crash;
  return runAsRoot("vfpass-crash-schedule", [&] { return parseAndRun(argc, argv); });
}
