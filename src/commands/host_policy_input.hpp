#pragma once

#include <optional>
#include <string>

#include "command_session.hpp"
#include "survey_domains.hpp"
#include "vfpass/plan/host_policy.hpp"
#include "vfpass/plan/plan_soft_roce.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {

/// An objection as one line, like withRemedy() of an Error.
std::string withRemedy(const plan::Objection& objection);

/// Those whose definitions name VFs of a PF, and those whose devices are unknown.
struct RemovedVfUsers {
  std::vector<DeviceUser> known;
  std::vector<std::string> unknown;
};

/// Finds the domains and networks whose definitions name VFs that a policy would remove. libvirt
/// reads its definitions only once, and only if a policy removes VFs: `host apply` runs before
/// libvirt at boot.
class DefinedUsers {
 public:
  explicit DefinedUsers(Session& session) : session_(session) {}

  /// Warns if libvirt does not respond; then there are none. The caller must hold none of our
  /// locks.
  RemovedVfUsers ofRemoved(const PhysicalFunction& pf, const PfPolicy& policy);

 private:
  Session& session_;
  std::optional<DomainSurvey> survey_;
};

/// The input of planHost(), read now. `users`: DefinedUsers::ofRemoved.
plan::HostInput hostInput(Session& session, const PhysicalFunction& pf, const PfPolicy& policy,
                          RemovedVfUsers users);

/// Adds the objections of checkVfSpace(), with which the plan has no steps.
void objectToSpace(Session& session, plan::HostDecision& decision);

/// The input of planSoftRoce(), read now.
plan::SoftRoceInput softRoceInput(Session& session);

/// The settings of this PF in host.yaml (nullptr: it has no entry) and its current settings.
report::HostEntry describePf(const PhysicalFunction& pf, const PfSettings& settings,
                             const PfPolicy* policy);

/// The PF of an entry of host.yaml. Throws (bad input) if no PF matches, or an earlier entry
/// matches the same PF.
const PhysicalFunction& pfOf(const PfPolicy& policy, const HostPolicy& all,
                             const Inventory& inventory);

/// An entry of host.yaml that could not be applied.
report::HostEntry failedEntry(const PfPolicy& policy, const Error& error);

/// The links in host.yaml and on the host, with objections as failures.
std::vector<report::SoftRoceEntry> describeLinks(
    const std::vector<plan::SoftRoceDecision>& decisions);

/// `gpu-memory-check` in host.yaml, and what is applied; nullopt for a captured tree, whose run
/// directory nobody has.
std::optional<report::MemoryCheckEntry> describeMemoryCheck(Session& session);

/// Failures go to standard error, as those of every command; the document of --json has them, too.
void reportFailures(Session& session, const report::HostReport& report);

/// The policy in host.yaml. Throws (bad input) if the file has mistakes; those in mappings are left
/// to `check`.
const HostPolicy& soundPolicy(Session& session);

struct HostApplyOptions {
  bool dryRun = false;
  bool allowDisruption = false;
  std::string only;  ///< `pfs`, `soft-roce`; empty: both
  std::string out;   ///< file for the plan of a dry run; may be empty
  std::string plan;  ///< file of a saved plan; may be empty
};

/// `host apply`: one plan for each PF of host.yaml and one for the SoftRoCE links. A plan that
/// fails does not stop the others.
ExitCode applyHost(commands::Session& session, const HostApplyOptions& options);

}  // namespace vfpass::commands
