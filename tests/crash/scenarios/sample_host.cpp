#include "scenarios/sample_host.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>

namespace vfpass::crash {

Uuid domainUuid(unsigned number) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "0f5e9a3c-1111-4222-8333-9444555%05u", number % 100000);
  return *parseUuid(text.data());
}

void writeMapping(const World& world, const std::string& vm, const std::string& text) {
  world.files.write("etc/vfpass/vms/" + vm + ".yaml", "version: 1\nvm: " + vm + "\n" + text);
}

std::string vfEntry(const std::string& name, const std::string& settings, const std::string& pf) {
  return "  - name: " + name + "\n    pf: {pci: \"" + pf + "\"}\n" + settings;
}

std::string trainingMapping() {
  return "vfs:\n" + vfEntry("rail0", "    vlan: {id: 100}\n    spoof-check: true\n") +
         vfEntry("rail1", "    vlan: {id: 101}\n    trust: false\n");
}

void setUpTraining(World& world, unsigned vfs) {
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  world.kernel.addPf(secondPf, "0000:00:02.0", "eth1", 8);
  if (vfs > 0) {
    world.kernel.setVfCount(firstPf, vfs);
    VfSettings& settings = world.kernel.settings(firstPf, 0);
    settings.mac = *parseMacAddress("02:aa:00:00:00:07");
    settings.vlan = Vlan{77, 3, VlanProtocol::dot1q};
    settings.linkState = LinkState::enable;
    world.files.write(world.files.directoryOf(vfAddressOf(firstPf, 0)) + "/driver_override",
                      "mlx5_core\n");
  }
  world.define("train0", domainUuid(1));
  writeMapping(world, "train0", trainingMapping());
}

void setUpVms(World& world, unsigned vms) {
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  world.kernel.setVfCount(firstPf, 4);
  world.kernel.settings(firstPf, 0).mac = *parseMacAddress("02:aa:00:00:00:07");
  world.kernel.settings(firstPf, 0).vlan = Vlan{77, 0, VlanProtocol::dot1q};
  for (unsigned vm = 0; vm < vms; ++vm) {
    const std::string name = "vm" + std::to_string(vm);
    world.define(name, domainUuid(vm + 1));
    writeMapping(world, name,
                 "vfs:\n" + vfEntry("rail0", "    vlan: {id: " + std::to_string(10 + vm) + "}\n"));
  }
}

namespace {

// The GPU of an HGX B200, whose NVSwitches are no functions of the host.
void addBoardGpu(World& world, unsigned module) {
  const std::string address = boardGpus.at(module - 1);
  world.kernel.addFunction(address, "0000:00:0" + std::to_string(module + 2) + ".0", "nvidia",
                           "0x030200");
  const std::string folder = world.files.directoryOf(address);
  world.files.write(folder + "/vendor", "0x10de\n");
  world.files.write(folder + "/device", "0x2901\n");
}

FabricPartition partitionOf(unsigned id, const std::vector<unsigned>& modules) {
  FabricPartition partition{id, false, {}};
  for (const unsigned module : modules) {
    partition.gpus.push_back({module, std::nullopt});
  }
  return partition;
}

std::string boardEntry(unsigned module) {
  return "  - {name: gpu" + std::to_string(module) + ", pci: \"" + boardGpus.at(module - 1) +
         "\", nvlink-module: " + std::to_string(module) + "}\n";
}

}  // namespace

void setUpBoard(World& world) {
  for (unsigned module = 1; module <= boardGpus.size(); ++module) {
    addBoardGpu(world, module);
  }
  world.fabric.partitions = {partitionOf(1, {1, 2, 3, 4}), partitionOf(2, {1, 2}),
                             partitionOf(3, {3, 4}),       partitionOf(4, {1}),
                             partitionOf(5, {2}),          partitionOf(6, {3}),
                             partitionOf(7, {4})};
  world.files.write(fmpmFile, "");
  for (const unsigned vm : {0U, 1U}) {
    const std::string name = "train" + std::to_string(vm);
    world.define(name, domainUuid(vm + 1));
    writeMapping(world, name,
                 "topology: flat\nnvlink: partition\ngpus:\n" + boardEntry(2 * vm + 1) +
                     boardEntry(2 * vm + 2));
  }
}

void writeHostFile(const World& world, const std::string& text) {
  world.files.write("etc/vfpass/host.yaml", "version: 1\n" + text);
}

void require(const Result& result, const std::string& command) {
  if (result.code != 0) {
    throw std::runtime_error(command + " failed with " + std::to_string(result.code) + ", signal " +
                             std::to_string(result.signal) + ":\n" + result.output);
  }
}

}  // namespace vfpass::crash
