#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::cli {

/// Brings one PF to what host.yaml says, or tells what that would take.
class PolicyRun {
 public:
  enum class Mode { look, change };

  PolicyRun(Session& session, const PfPolicy& policy, Mode mode);

  /// Throws Error at the first thing that cannot be done; actions() tells what was done until
  /// then. When changing, the PF's lock is held by the caller.
  void run(const PciAddress& pf);

  /// In order, one line each; empty when all was as wanted.
  [[nodiscard]] const std::vector<std::string>& actions() const { return actions_; }

 private:
  void bringVfs(const PhysicalFunction& pf);
  void rebuildVfs(const PhysicalFunction& pf, unsigned count, bool setsMode);
  /// After a failure: as many VFs as there were. Returns what to add to the message.
  std::string putBack(const PhysicalFunction& pf);
  void removeVfs(const PhysicalFunction& pf);
  void createVfs(const PhysicalFunction& pf, unsigned count, bool probe);
  void setEswitchMode(const PhysicalFunction& pf);
  void bringLink(const PhysicalFunction& pf);
  void act(const std::string& description, const std::function<void()>& work);

  Session& session_;
  const PfPolicy& policy_;
  Mode mode_;
  std::vector<Lease> leases_;
  std::vector<std::string> actions_;
};

}  // namespace vfpass::cli
