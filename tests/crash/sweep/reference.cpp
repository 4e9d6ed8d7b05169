#include "sweep/reference.hpp"

#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

// Adds the states that further commands reach without a fault.
void addSuccessors(Reference& reference, const Scenario& scenario, World& world) {
  if (!scenario.isHook) {
    world.vfpass({"recover"});
    reference.recovered.insert(HostState(world).withoutIdleAttributes);
  }
  if (scenario.domain.empty()) {
    return;
  }
  const bool wasRunning = world.domain(scenario.domain).active;
  if (!wasRunning && world.start(scenario.domain).code != 0) {
    return;
  }
  world.stop(scenario.domain);
  reference.started.insert(HostState(world).withoutIdleAttributes);
  if (wasRunning && scenario.isHook) {
    reference.recovered.insert(HostState(world).withoutIdleAttributes);
  }
}

}  // namespace

HostState::HostState(const World& world)
    : complete(fingerprint(world)),
      withoutKernel(fingerprint(world, {false, true})),
      withoutIdleAttributes(fingerprint(world, {true, false})) {}

Reference readReference(const Scenario& scenario, const World& base,
                        const std::filesystem::path& scratch, Report& report) {
  World world(base, scratch / "work");
  HostState before(world);
  const Result result = scenario.act(world, {});
  require(result, scenario.name);
  reportUnjournaled(report, result, {scenario.name, "vfpass-crash --recover " + scenario.name});
  Reference reference{std::move(before), HostState(world), {}, {}};
  addSuccessors(reference, scenario, world);
  World untouched(base, scratch / "work");
  addSuccessors(reference, scenario, untouched);
  return reference;
}

void reportUnjournaled(Report& report, const Result& result, const Place& place) {
  for (const auto& line : result.unjournaled) {
    report.violation("effect before the journal is on disk", place, "    " + line + '\n');
  }
}

}  // namespace vfpass::crash
