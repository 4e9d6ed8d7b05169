#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "fake/fake_hypervisor.hpp"
#include "fake/fake_kernel.hpp"
#include "fake/seal_key.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"

namespace vfpass::apply {

inline constexpr std::chrono::milliseconds databaseTimeout{2000};
/// The PF of Host.
inline constexpr PciAddress pfAddress{0, 1, 0, 0};

/// A host with one PF, a domain, a database in its own directory, and a mapping of two VFs.
class Host {
 public:
  explicit Host(unsigned vfCount = 4);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  plan::AttachInput attachInput(std::uint64_t generation);
  /// With the scope in `scope`.
  Plan attachPlan();
  Plan detachPlan();
  Plan preparePlan();
  void attach() { execute(attachPlan()); }
  /// The PF shares out 64 interrupt vectors, and rail0 asks for 5 of them.
  void shareVectors();
  std::vector<std::string> execute(const Plan& plan);
  /// Boots the domain with two spare root ports; without a persistent XML, it is transient.
  void start(bool persistent = true);
  /// Does what libvirt and the hook do when a guest starts with the devices of its definition.
  void startWithHook();
  /// Sets all leases to this state, as the hook does.
  void setLeases(LeaseState wanted);
  /// Does what libvirt and the hook do when a guest stops.
  void stop();
  [[nodiscard]] std::set<std::string> plugged() const;
  /// Like a new process: opens the database again.
  std::vector<std::string> recoverAll();
  std::vector<std::string> recoveryWarnings;  ///< of the last recoverAll()
  [[nodiscard]] std::vector<Lease> leases() const;
  Tools tools(state::Database& database);
  /// All state that must be either old or new: kernel, XML, leases.
  [[nodiscard]] std::string fingerprint() const;
  [[nodiscard]] std::string xml() const { return hypervisor.domains[0].persistentXml; }

  fake::FakeKernel kernel;
  fake::FakeHypervisor hypervisor;
  std::filesystem::path folder;
  Topology topology;  ///< empty unless a test sets it
  Mapping mapping;
  Scope scope;
  Uuid uuid;
  SealKey key = fake::sealKey();
  std::function<void()> makeSealKey = [] {};
  std::function<void()> checkpoint = [] {};
  std::function<Definitions()> readDefinitions = [] { return Definitions{}; };
};

/// Puts this function of the mapping, the first one, on a board with an NVSwitch, as the GPU with
/// module ID 1 of a fabric manager with partitions of modules 1 and 2, and of module 1 alone.
void shareNvlink(Host& host, const PciAddress& gpu);

}  // namespace vfpass::apply
