#include "scenarios/sample_host.hpp"
#include "scenarios/scenario.hpp"

namespace vfpass::crash {
namespace {

// `vfs` exist, and the host file requests other settings of the PF.
std::function<void(World&)> changedPf(unsigned vfs, const std::string& settings) {
  return [vfs, settings](World& world) {
    setUpTraining(world, vfs);
    writeHostFile(world, std::string("pfs:\n  - pf: {pci: \"") + firstPf + "\"}\n" + settings);
  };
}

void twoSoftRoceLinks(World& world) {
  setUpTraining(world, 0);
  writeHostFile(world,
                "soft-roce:\n  - {name: rxe0, netdev: eth0}\n  - {name: rxe1, netdev: eth1}\n");
}

void movedSoftRoceLink(World& world) {
  setUpTraining(world, 0);
  writeHostFile(world, "soft-roce:\n  - {name: rxe0, netdev: eth0}\n");
  require(world.vfpass({"host", "apply"}), "host apply");
  writeHostFile(world, "soft-roce:\n  - {name: rxe0, netdev: eth1}\n");
}

Scenario hostScenario(const std::string& name, std::function<void(World&)> setUp,
                      std::vector<std::string> words) {
  return {name, std::move(setUp), command(std::move(words)), false, ""};
}

}  // namespace

std::vector<Scenario> hostScenarios() {
  const std::vector<std::string> apply{"host", "apply", "--allow-disruption"};
  return {
      hostScenario("host-apply-count",
                   changedPf(4,
                             "    virtual-function-count: 6\n    probe-virtual-functions: true\n"
                             "    mtu: 9000\n"),
                   apply),
      hostScenario("host-apply-create",
                   changedPf(0,
                             "    virtual-function-count: 4\n    probe-virtual-functions: false\n"
                             "    mtu: 9000\n"),
                   apply),
      hostScenario("host-apply-mode",
                   changedPf(4,
                             "    embedded-switch-mode: switchdev\n    virtual-function-count: 4\n"
                             "    probe-virtual-functions: true\n"),
                   apply),
      hostScenario("host-apply-remove", changedPf(4, "    virtual-function-count: 0\n"), apply),
      hostScenario("soft-roce-add", twoSoftRoceLinks, {"host", "apply"}),
      hostScenario("soft-roce-move", movedSoftRoceLink, {"host", "apply"})};
}

}  // namespace vfpass::crash
