#include "scenarios/sample_host.hpp"
#include "scenarios/scenario.hpp"

namespace vfpass::crash {
namespace {

std::function<void(World&)> attached(unsigned vfs) {
  return [vfs](World& world) {
    setUpTraining(world, vfs);
    attach(world);
  };
}

void attachedAndRun(World& world) {
  attached(4)(world);
  start(world);
  stop(world);
}

void attachedAndRunning(World& world) {
  attached(4)(world);
  start(world);
}

// Nobody released the VFs, so they have to be reset.
void endedWithoutRelease(World& world) {
  attachedAndRunning(world);
  world.endWithoutHook("train0");
}

std::function<void(World&)> undefined(unsigned vfs) {
  return [vfs](World& world) {
    attached(vfs)(world);
    world.hypervisor.domains.clear();
    world.files.remove("etc/vfpass/vms/train0.yaml");
  };
}

void withoutDatabase(World& world) {
  attached(4)(world);
  world.files.remove("var/lib/vfpass");
}

}  // namespace

std::vector<Scenario> detachScenarios() {
  const auto detach = command({"detach", "train0"});
  const auto detachRunning = command({"detach", "train0", "--force"});
  return {
      {"detach-existing", attached(4), detach},
      {"detach-created", attached(0), detach},
      {"detach-after-run", attachedAndRun, detach},
      {"detach-unreleased", endedWithoutRelease, detach},
      {"detach-live", attachedAndRunning, detachRunning},
      {"detach-live-only", attachedAndRunning, command({"detach", "train0", "--live", "--force"})},
      {"detach-config-only", attachedAndRunning, command({"detach", "train0", "--config"})},
      {"gc-undefined", undefined(4), command({"gc"}), false, ""},
      {"gc-undefined-created", undefined(0), command({"gc"}), false, ""},
      {"recover-lost-database", withoutDatabase, command({"recover"})},
      {"recover-unreleased", endedWithoutRelease, command({"recover"})}};
}

}  // namespace vfpass::crash
