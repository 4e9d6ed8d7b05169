#include "scenarios/sample_host.hpp"
#include "scenarios/scenario.hpp"

namespace vfpass::crash {
namespace {

void attachedAndRun(World& world) {
  setUpTraining(world, 4);
  attach(world);
  start(world);
  stop(world);
}

void attachedAndRunning(World& world) {
  setUpTraining(world, 4);
  attach(world);
  start(world);
}

// The mapping has another VLAN, which an attach sets under the running guest.
void runningWithOtherVlan(World& world) {
  attachedAndRunning(world);
  writeMapping(world, "train0",
               "vfs:\n" + vfEntry("rail0", "    vlan: {id: 200}\n    spoof-check: true\n") +
                   vfEntry("rail1", "    vlan: {id: 101}\n    trust: false\n"));
}

void rebootedWithVfs(World& world) {
  setUpTraining(world, 4);
  attach(world);
  world.reboot();
  world.kernel.setVfCount(firstPf, 4);
}

void rebootedWithoutVfs(World& world) {
  setUpTraining(world, 0);
  attach(world);
  world.reboot();
}

void runningWithoutDevices(World& world) {
  setUpTraining(world, 4);
  world.startWithoutHook("train0");
}

void withGpu(World& world) {
  setUpTraining(world, 0);
  world.kernel.addFunction(gpu, "0000:00:03.0", "nvidia", "0x030200");
  writeMapping(world, "train0", gpuMapping);
}

void attachedGpu(World& world) {
  withGpu(world);
  attach(world);
}

// The other half of the board belongs to a running VM.
void attachedPartition(World& world) {
  setUpBoard(world);
  attach(world);
  require(world.vfpass({"attach", "train1"}), "attach of train1");
  require(world.start("train1"), "start of train1");
}

void runningPartition(World& world) {
  attachedPartition(world);
  start(world);
}

Result startDomain(World& world, const Fault& fault) { return world.start("train0", fault); }
Result stopDomain(World& world, const Fault& fault) { return world.stop("train0", fault); }

}  // namespace

std::vector<Scenario> guestScenarios() {
  return {{"prepare", attachedAndRun, startDomain, true},
          {"prepare-unbound", rebootedWithVfs, startDomain, true},
          {"prepare-create", rebootedWithoutVfs, startDomain, true},
          {"release", attachedAndRunning, stopDomain, true},
          {"attach-live", runningWithoutDevices, command({"attach", "train0"})},
          {"attach-live-only", runningWithoutDevices, command({"attach", "train0", "--live"})},
          {"reattach-live", runningWithOtherVlan, command({"attach", "train0"})},
          {"prepare-partition", attachedPartition, startDomain, true},
          {"release-partition", runningPartition, stopDomain, true},
          {"function-attach", withGpu, command({"attach", "train0"})},
          {"function-detach", attachedGpu, command({"detach", "train0"})}};
}

}  // namespace vfpass::crash
