#include "scenarios/scenario.hpp"

#include "scenarios/sample_host.hpp"

namespace vfpass::crash {

void attach(World& world) { require(world.vfpass({"attach", "train0"}), "attach"); }
void start(World& world) { require(world.start("train0"), "start"); }
void stop(World& world) { require(world.stop("train0"), "stop"); }

std::function<Result(World&, const Fault&)> command(std::vector<std::string> words) {
  return [words](World& world, const Fault& fault) { return world.vfpass(words, fault); };
}

std::vector<Scenario> allScenarios() {
  std::vector<Scenario> all;
  for (const auto& group : {attachScenarios(), detachScenarios(), guestScenarios(), hostScenarios(),
                            adoptionScenarios()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace vfpass::crash
