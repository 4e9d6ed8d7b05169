#include "sweep/subset.hpp"

#include <map>
#include <memory>
#include <random>

#include "sweep/bench.hpp"

namespace vfpass::crash {
namespace {

template <typename Item>
const Item& pick(std::mt19937& random, const std::vector<Item>& items) {
  return items[random() % items.size()];
}

class Benches {
 public:
  Benches(std::filesystem::path scratch, Report& report)
      : scratch_(std::move(scratch)), report_(report) {}

  Bench& of(const Scenario& scenario) {
    auto& bench = benches_[scenario.name];
    if (!bench) {
      bench = std::make_unique<Bench>(scenario, scratch_ / scenario.name, report_);
    }
    return *bench;
  }

 private:
  std::filesystem::path scratch_;
  Report& report_;
  std::map<std::string, std::unique_ptr<Bench>> benches_;
};

// One kill of `recover` and not all of them, which would take the time of hundreds of other points.
long secondPoint(std::mt19937& random, const Experiment& experiment) {
  const auto number = static_cast<long>(random() % 60) + 1;
  return experiment.continuation == Continuation::nestedKills ? number : 0;
}

}  // namespace

void runSubset(std::uint32_t seed, long points, std::chrono::seconds duration,
               const std::filesystem::path& scratch, Report& report) {
  std::mt19937 random(seed);
  Benches benches(scratch, report);
  const auto scenarios = allScenarios();
  const auto end = std::chrono::steady_clock::now() + duration;
  for (long run = 0; run < points && std::chrono::steady_clock::now() < end;) {
    const Scenario& scenario = pick(random, scenarios);
    const Experiment& experiment = pick(random, allExperiments());
    const auto number = static_cast<long>(random() & 0x7fffffffU);
    const long second = secondPoint(random, experiment);
    Bench& bench = benches.of(scenario);
    if (const long all = bench.points(experiment); all > 0) {
      bench.run(experiment, number % all + 1, second);
      ++run;
    }
  }
}

}  // namespace vfpass::crash
