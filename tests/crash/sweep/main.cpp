// Kills or disturbs vfpass at every change. See docs/reliability.md.
#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>
#include <random>

#include "sweep/bench.hpp"
#include "sweep/subset.hpp"
#include "world/run_as_root.hpp"
#include "world/scratch_directory.hpp"

namespace vfpass::crash {
namespace {

struct Options {
  std::string scenario;
  std::vector<std::string> sweeps;
  std::string experiment;
  long at = 0;
  long second = 0;
  long part = 0;
  long parts = 1;
  long points = 0;
  long seconds = 0;
  std::uint32_t seed = 0;
};

bool isSelected(const Options& options, const Experiment& experiment) {
  return options.experiment.empty() ? std::find(options.sweeps.begin(), options.sweeps.end(),
                                                experiment.sweep) != options.sweeps.end()
                                    : experiment.name == options.experiment;
}

// Returns how many points it ran.
long sweepScenario(const Options& options, const Scenario& scenario, Report& report,
                   const std::filesystem::path& scratch) {
  Bench bench(scenario, scratch, report);
  std::cout << scenario.name << ':' << std::flush;
  long number = 0;
  long runs = 0;
  for (const auto& experiment : allExperiments()) {
    if (!isSelected(options, experiment)) {
      continue;
    }
    const long points = bench.points(experiment);
    std::cout << ' ' << experiment.name << ' ' << points << std::flush;
    for (long at = 1; at <= points; ++at) {
      const bool isInPart = number++ % options.parts == options.part;
      if (isInPart && (options.at == 0 || options.at == at)) {
        bench.run(experiment, at, options.second);
        ++runs;
      }
    }
  }
  std::cout << std::endl;
  return runs;
}

long sweep(const Options& options, Report& report, const std::filesystem::path& scratch) {
  long runs = 0;
  for (const auto& scenario : allScenarios()) {
    if (options.scenario.empty() || scenario.name == options.scenario) {
      runs += sweepScenario(options, scenario, report, scratch);
    }
  }
  return runs;
}

template <typename Items>
std::vector<std::string> namesOf(const Items& items) {
  std::vector<std::string> names;
  for (const auto& each : items) {
    names.push_back(each.name);
  }
  return names;
}

void listScenarios() {
  for (const auto& name : namesOf(allScenarios())) {
    std::cout << name << '\n';
  }
}

int run(const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  const ScratchDirectory scratch;
  Report report;
  if (options.points > 0 || options.seconds > 0) {
    std::cout << "seed " << options.seed << std::endl;
    runSubset(options.seed, options.points > 0 ? options.points : std::numeric_limits<long>::max(),
              options.seconds > 0 ? std::chrono::seconds(options.seconds) : std::chrono::hours(24),
              scratch.path(), report);
  } else if (sweep(options, report, scratch.path()) == 0) {
    std::cerr << "no point is selected, so nothing was tested\n";
    return 2;
  }
  report.print();
  std::cout << std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() -
                                                                began)
                   .count()
            << "  seconds\n";
  return report.violations() == 0 ? 0 : 1;
}

int parseAndRun(int argc, char** argv) {
  Options options;
  options.seed = std::random_device()();
  bool list = false;
  CLI::App app("Kill or disturb vfpass at every change of a simulated host");
  app.add_flag("--list", list, "Print the names of the scenarios");
  app.add_option("SCENARIO", options.scenario, "Only this scenario")
      ->check(CLI::IsMember(namesOf(allScenarios())));
  for (const auto& name : allSweeps()) {
    app.add_flag_callback("--" + name, [&options, name] { options.sweeps.push_back(name); });
  }
  app.add_option("--experiment", options.experiment, "Only this experiment")
      ->check(CLI::IsMember(namesOf(allExperiments())));
  app.add_option("--at", options.at, "Only this point");
  app.add_option("--second", options.second, "Only this kill of recover");
  app.add_option("--part", options.part, "Only this part of the points of each scenario, from 0");
  app.add_option("--parts", options.parts, "The number of parts")->check(CLI::PositiveNumber);
  app.add_option("--points", options.points, "So many random points");
  app.add_option("--seconds", options.seconds, "Random points for this time");
  app.add_option("--seed", options.seed, "Seed of the random points");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    listScenarios();
    return 0;
  }
  if (options.sweeps.empty()) {
    options.sweeps = {"recover", "again", "reboot", "start", "late", "errors"};
  }
  return run(options);
}

}  // namespace
}  // namespace vfpass::crash

int main(int argc, char** argv) {
  using namespace vfpass::crash;
  return runAsRoot("vfpass-crash", [&] { return parseAndRun(argc, argv); });
}
