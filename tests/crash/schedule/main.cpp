// Several vfpass processes in every order that a seed can give. See docs/reliability.md.
#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>
#include <random>

#include "schedule/explorer.hpp"
#include "schedule/jobs.hpp"
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
  unsigned jobs = 1;
  std::string schedule;
};

// Job 0 takes the first of every so many seeds or steps, job 1 the second, and so on.
Findings share(const Options& options, const Job& job) {
  Explorer explorer(job.scratch, options.twice);
  if (options.pairs) {
    explorer.explorePairs(options.part, options.parts,
                          {options.steps.first + options.steps.every * job.number,
                           options.steps.every * options.jobs});
  } else {
    explorer.explore({options.seed + job.number, options.runs - job.number, options.jobs},
                     std::chrono::seconds(options.seconds));
  }
  return explorer.findings();
}

int run(const Options& options) {
  const ScratchDirectory scratch;
  if (!options.schedule.empty()) {
    Explorer(scratch.path(), options.twice).replay(parseSchedule(options.schedule));
    return 0;
  }
  if (!options.pairs) {
    std::cout << "seed " << options.seed << std::endl;
  }
  const Findings findings =
      runJobs(options.jobs, scratch.path(), [&](const Job& job) { return share(options, job); });
  findings.print();
  return findings.violations == 0 ? 0 : 1;
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
  app.add_option("--jobs", options.jobs, "Number of schedules at once, in a process each (1)")
      ->check(CLI::PositiveNumber);
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
