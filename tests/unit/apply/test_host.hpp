#pragma once

#include <filesystem>

#include "fake/fake_hypervisor.hpp"
#include "fake/fake_kernel.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/plan/attach.hpp"
#include "vfpass/plan/detach.hpp"

namespace vfpass::apply {

/// A host with one PF, a domain, a database in a folder of its own, and a mapping of two VFs.
class Host {
 public:
  explicit Host(unsigned vfCount = 4);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  plan::AttachInput attachInput(std::uint64_t generation);
  /// Of the scope that `scope` holds.
  Plan attachPlan();
  Plan detachPlan();
  Plan preparePlan();
  void attach() { execute(attachPlan()); }
  std::vector<std::string> execute(const Plan& plan);
  /// Boots the domain with two spare root ports; without a persistent XML it is transient.
  void start(bool persistent = true);
  /// What libvirt and the hook do when a guest ends.
  void stop();
  [[nodiscard]] std::set<std::string> plugged() const;
  /// As a new process would: database opened afresh.
  std::vector<std::string> recoverAll();
  [[nodiscard]] std::vector<Lease> leases() const;
  Tools tools(state::Database& database);
  /// All that must be either the old or the new: kernel, XML, leases.
  [[nodiscard]] std::string fingerprint() const;
  [[nodiscard]] std::string xml() const { return hypervisor.domains[0].persistentXml; }

  fake::FakeKernel kernel;
  fake::FakeHypervisor hypervisor;
  std::filesystem::path folder;
  Mapping mapping;
  Scope scope;
  Uuid uuid;
};

}  // namespace vfpass::apply
