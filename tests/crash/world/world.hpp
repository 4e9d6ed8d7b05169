#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fake/fake_hypervisor.hpp"
#include "world/fault.hpp"
#include "world/simulated_disk.hpp"
#include "world/simulated_fabric.hpp"
#include "world/simulated_kernel.hpp"

namespace vfpass::crash {

/// Where libvirt keeps the definitions of domains.
inline constexpr const char* definitionsDirectory = "/etc/libvirt/qemu";

/// A host: its kernel, its libvirt and its files. It survives the death of every worker. The state
/// directory, the lock files, the seal key and the configuration are real files below the root.
class World {
 public:
  /// A host after its first boot, without devices and domains. Replaces what is in the directory.
  explicit World(const std::filesystem::path& root);
  /// A copy in another directory, which it replaces.
  World(const World& other, const std::filesystem::path& root);
  /// A copy with these files, which are those of the other one.
  World(const World& other, HostFiles copiedFiles);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() = default;

  HostFiles files;
  SimulatedDisk disk;
  SimulatedKernel kernel;
  SimulatedFabric fabric;
  fake::FakeHypervisor hypervisor;
  long failingAllocation = -1;  ///< of every worker; -1: none

  /// Defines a domain that is shut off.
  void define(const std::string& name, const Uuid& uuid);
  DomainDescription& domain(const std::string& name);
  /// Starts the domain without calling the hook, as it would run without our devices.
  void startWithoutHook(const std::string& name);
  /// The domain ends without a call of the hook, as if libvirt had died with it.
  void endWithoutHook(const std::string& name);

  /// Runs a program with at most one fault. A kill ends all its processes.
  Result run(Program program, const Fault& fault = {});
  /// Runs `vfpass WORDS`.
  Result vfpass(std::vector<std::string> words, const Fault& fault = {});
  /// Starts a domain as libvirt does: the hook may refuse. The fault happens in the first call of
  /// the hook.
  Result start(const std::string& name, const Fault& fault = {});
  Result stop(const std::string& name, const Fault& fault = {});

  /// All domains stop, and files below /run disappear.
  void reboot();
  /// A reboot that loses what was not synced: of the files, and of libvirt's definitions.
  void failPower(SimulatedDisk::Survivors survivors, std::uint32_t seed);
  [[nodiscard]] std::string bootId() const { return "boot-" + std::to_string(boot_); }

  /// Executes a request that changes the kernel or libvirt; see SimulatedKernel::change().
  Message change(const Message& request, std::optional<PartialFailure> failure = std::nullopt);
  /// Answers a request that only reads.
  Message read(const Message& request);

 private:
  Message changeDomain(const Message& request);
  Message readDomains(const Message& request);
  [[nodiscard]] Message holders(const Message& request) const;

  void define(const std::string& xml);

  int boot_ = 1;
  /// Earlier definitions that are on the disk, of domains that were defined since.
  std::map<Uuid, DomainXml> syncedDefinitions_;
};

}  // namespace vfpass::crash
