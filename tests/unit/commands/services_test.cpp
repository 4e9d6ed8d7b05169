#include "host_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> units(const config::Configuration& configuration) {
  std::vector<std::string> names;
  for (const auto& unit : requiredUnits(configuration, configuration.mappings)) {
    names.push_back(unit.name + ": " + unit.why);
  }
  return names;
}

TEST(RequiredUnits, FollowFromHostFileAndMappings) {
  config::Configuration configuration;
  configuration.mappings.resize(3);
  configuration.mappings[0].vm = "a";
  configuration.mappings[1].vm = "b";
  EXPECT_THAT(units(configuration), IsEmpty());
  configuration.host.gpuMemoryCheck = true;
  EXPECT_THAT(units(configuration),
              ElementsAre("vfpass-host.service: host.yaml has `gpu-memory-check: true`"));
  configuration.mappings[0].verify.onStart = configuration.mappings[1].verify.onStart = true;
  configuration.host.pfs.emplace_back();
  configuration.softRoce.emplace_back();
  EXPECT_THAT(units(configuration),
              ElementsAre("vfpass-host.service: host.yaml has settings of PFs",
                          "vfpass-soft-roce.service: host.yaml has SoftRoCE links",
                          "vfpass-verify.path: `verify: {on-start: report}` of a, b"));
}

}  // namespace
}  // namespace vfpass::commands
