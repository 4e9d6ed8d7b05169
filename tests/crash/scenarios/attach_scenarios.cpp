#include <filesystem>

#include "scenarios/sample_host.hpp"
#include "scenarios/scenario.hpp"

namespace vfpass::crash {
namespace {

const std::string vlan100 = "    vlan: {id: 100}\n";
const std::string vlan101 = "    vlan: {id: 101}\n";
const std::string rail1 = vfEntry("rail1", vlan101 + "    trust: false\n");

void existingVfs(World& world) { setUpTraining(world, 4); }
void noVfs(World& world) { setUpTraining(world, 0); }

void withoutSealKey(World& world) {
  setUpTraining(world, 4);
  world.files.remove("etc/vfpass/seal.key");
}

void vfsOfTwoPfs(World& world) {
  setUpTraining(world, 4);
  writeMapping(world, "train0",
               "vfs:\n" + vfEntry("rail0", vlan100) + vfEntry("rail1", vlan101, secondPf));
}

// Attached, and then the mapping changes from `before` to `after`.
std::function<void(World&)> changedMapping(const std::string& before, const std::string& after) {
  return [before, after](World& world) {
    setUpTraining(world, 4);
    writeMapping(world, "train0", before);
    attach(world);
    writeMapping(world, "train0", after);
  };
}

}  // namespace

std::vector<Scenario> attachScenarios() {
  const auto act = command({"attach", "train0"});
  const std::string both = trainingMapping();
  const std::string otherTerms =
      "vfs:\n" + vfEntry("rail0", "    vlan: {id: 200}\n    mac: 02:bb:00:00:00:01\n") + rail1;
  const std::string three = both + vfEntry("rail2", "    vlan: {id: 102}\n");
  const std::string otherVf =
      "vfs:\n" + vfEntry("rail0", "    index: 3\n" + vlan100 + "    spoof-check: true\n") + rail1;
  const std::string onlyRail0 = "vfs:\n" + vfEntry("rail0", vlan100);
  const std::string onlyRail1 = "vfs:\n" + rail1;
  const std::string renamed = "vfs:\n" + vfEntry("rail9", vlan100) + rail1;
  const std::string swapped =
      "vfs:\n" + vfEntry("rail1", "    index: 0\n" + vlan100) + vfEntry("rail0", "    index: 1\n");
  return {{"attach-existing", existingVfs, act},
          {"attach-create", noVfs, act},
          {"attach-first-key", withoutSealKey, act},
          {"attach-two-pfs", vfsOfTwoPfs, act},
          {"reattach-terms", changedMapping(both, otherTerms), act},
          {"attach-shrink", changedMapping(both, onlyRail1), act},
          {"attach-shrink-two", changedMapping(three, onlyRail1), act},
          {"attach-move", changedMapping(both, otherVf), act},
          {"attach-grow", changedMapping(onlyRail0, both), act},
          {"attach-rename", changedMapping(both, renamed), act},
          {"attach-swap", changedMapping(both, swapped), act}};
}

}  // namespace vfpass::crash
