#include "sweep/bench.hpp"

#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

std::string storyOf(const Result& result) {
  return "    fault at: " + result.faulted.substr(0, 160) + '\n' +
         commandText("command", result.code, result.output);
}

}  // namespace

Bench::Bench(Scenario scenario, std::filesystem::path scratch, Report& report)
    : scenario_(std::move(scenario)),
      scratch_(std::move(scratch)),
      report_(report),
      base_(scratch_ / "base"),
      reference_([this] {
        scenario_.setUp(base_);
        return readReference(scenario_, base_, scratch_, report_);
      }()) {}

bool Bench::applies(const Experiment& experiment) const {
  return experiment.continuation != Continuation::start ||
         (!scenario_.isHook && !scenario_.domain.empty());
}

long Bench::points(const Experiment& experiment) {
  if (!applies(experiment)) {
    return 0;
  }
  const auto known = points_.find(experiment.name);
  if (known != points_.end()) {
    return known->second;
  }
  World world(base_, scratch_ / "work");
  const Result result = scenario_.act(world, experiment.fault);
  long points = result.points;
  if (experiment.failsMemory) {
    for (points = 0; allocationAt(points + 1) <= result.allocations;) {
      ++points;
    }
  }
  return points_[experiment.name] = points;
}

void Bench::run(const Experiment& experiment, long point, long second) {
  place_ = {scenario_.name + ", " + experiment.name + " at " + std::to_string(point),
            "vfpass-crash --experiment " + experiment.name + " --at " + std::to_string(point) +
                ' ' + scenario_.name};
  World world(base_, scratch_ / "work");
  Fault fault = experiment.fault;
  if (experiment.failsMemory) {
    world.failingAllocation = allocationAt(point);
  } else {
    fault.at = point;
  }
  const Result result = scenario_.act(world, fault);
  world.failingAllocation = -1;
  report_.count(experiment.name);
  continueAfter(experiment, world, result, point, second);
}

void Bench::continueAfter(const Experiment& experiment, World& world, const Result& result,
                          long point, long second) {
  const std::string story = storyOf(result);
  switch (experiment.continuation) {
    case Continuation::recover:
      checkRecovery(world, story, oldOrNew(reference_.recovered));
      return;
    case Continuation::again:
      checkSameCommand(world, story);
      return;
    case Continuation::reboot:
      checkReboot(world, story);
      return;
    case Continuation::powerFailure:
      checkPowerFailure(world, story, experiment.variant, point);
      return;
    case Continuation::start:
      checkStart(world, story);
      return;
    case Continuation::nestedKills:
      checkNestedKills(world, story, second);
      return;
    case Continuation::recoverTooEarly:
      recoverTooEarly(world, story);
      return;
    case Continuation::judge:
      world.kernel.finishPending();
      judge(world, result);
      return;
  }
}

Bench::Expectation Bench::oldOrNew(const std::set<std::string>& others) const {
  Expectation expected{reference_.before.complete, reference_.after.complete, others, true};
  expected.others.insert(reference_.before.withoutIdleAttributes);
  expected.others.insert(reference_.after.withoutIdleAttributes);
  return expected;
}

void Bench::violation(const std::string& kind, const std::string& story) {
  report_.violation(kind, place_, story);
}

}  // namespace vfpass::crash
