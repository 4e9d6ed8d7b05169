#include "schedule/host_set_up.hpp"

#include "scenarios/sample_host.hpp"
#include "vfpass/config/configuration.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

std::string vlan(unsigned id) { return "    vlan: {id: " + std::to_string(id) + "}\n"; }

void setUpAbsent(World& world) {
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  for (unsigned vm = 0; vm < 2; ++vm) {
    const std::string name = "vm" + std::to_string(vm);
    world.define(name, domainUuid(vm + 1));
    writeMapping(world, name, "vfs:\n" + vfEntry("rail0", vlan(10 + vm)));
  }
}

void setUpTwoPfs(World& world) {
  setUpVms(world, 3);
  world.kernel.addPf(secondPf, "0000:00:02.0", "eth1", 8);
  world.kernel.setVfCount(secondPf, 4);
  for (unsigned vm = 0; vm < 3; ++vm) {
    writeMapping(
        world, "vm" + std::to_string(vm),
        "vfs:\n" + vfEntry("rail0", vlan(10 + vm)) + vfEntry("rail1", vlan(20 + vm), secondPf));
  }
}

void setUpFunction(World& world) {
  world.kernel.addFunction(gpu, "0000:00:03.0", "nvidia", "0x030200");
  for (unsigned vm = 0; vm < 2; ++vm) {
    const std::string name = "vm" + std::to_string(vm);
    world.define(name, domainUuid(vm + 1));
    writeMapping(world, name, gpuMapping);
  }
}

HostSetUp makeHost(const std::string& name, void (*setUp)(World&),
                   const std::filesystem::path& scratch) {
  HostSetUp host{.name = name,
                 .vms = {},
                 .world = std::make_unique<World>(scratch / ("host-" + name)),
                 .state = {},
                 .rebootedState = {},
                 .runFiles = HostFiles(scratch / ("run-" + name))};
  setUp(*host.world);
  // Workers are forks of this process: they inherit the schema of mappings. Building it would take
  // a tenth of their time.
  config::loadConfiguration(host.world->files.root() / "etc/vfpass");
  for (const auto& domain : host.world->hypervisor.domains) {
    host.vms.push_back(domain.name);
  }
  require(host.world->vfpass({"recover"}), "recover");  // creates the database
  host.state = fingerprint(*host.world);
  World rebooted(*host.world, scratch / "rebooted");
  rebooted.reboot();
  host.rebootedState = fingerprint(rebooted);
  host.world->files.copyTo(host.runFiles.root());
  return host;
}

}  // namespace

const HostFiles& HostSetUp::filesForRun() const {
  runFiles.restore(world->files);
  return runFiles;
}

std::vector<HostSetUp> makeHosts(const std::filesystem::path& scratch) {
  std::vector<HostSetUp> hosts;
  hosts.push_back(makeHost(
      "vfs", [](World& world) { setUpVms(world, 3); }, scratch));
  hosts.push_back(makeHost("absent", setUpAbsent, scratch));
  hosts.push_back(makeHost("two", setUpTwoPfs, scratch));
  hosts.push_back(makeHost("function", setUpFunction, scratch));
  return hosts;
}

}  // namespace vfpass::crash
