#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holder_gate.hpp"
#include "vfpass/apply/run.hpp"

// VFs that vfpass created belong to all domains that lease one of them, and the last one removes
// them. Which one is the last may turn out after its plan was made: the others have ended their
// leases meanwhile, or the attach that created the VFs was rolled back. Call the functions that
// find and remove them under the PF locks, before the leases end. A domain that has no lease may
// name the VFs, too; libvirt is asked before the locks are taken.

namespace vfpass::apply {

/// Throws unless newly created VFs are where the leases say and can be assigned.
void requireCreatedVfs(const CreateVfs& created, const Plan& plan, Tools& tools);

/// What libvirt has answered.
struct AskedDefinitions {
  std::optional<Definitions> known;  ///< nullopt: not asked, or `problem`
  std::string problem;               ///< why it could not be asked
};

/// The definitions of libvirt, if the plan removes VFs, or it or its rollback ends leases of VFs
/// that vfpass created. If they cannot be read, VFs that the plan does not remove stay, which is a
/// warning. The caller holds no lock of a PF: libvirt may wait for our hook, which waits for one.
AskedDefinitions definitionsFor(const Plan& plan, Tools& tools, std::vector<std::string>& warnings);

/// Whether the plan needs definitionsFor() as leases are now: it removes VFs, or no other lease of
/// a PF remains. Listing all domains for each of many operations would take quadratic time.
bool needsDefinitions(const Plan& plan, const Tools& tools);

/// Why VFs that the plan removes have to stay, by PF: a definition names one. The plan was made
/// before libvirt worked, and a guest may take minutes to release its devices. The leases that the
/// plan ends must still be recorded.
/// Throws Error (refused) if libvirt could not be asked for them.
std::map<PciAddress, std::string> namedVfs(const Plan& plan, const AskedDefinitions& definitions,
                                           Tools& tools);

/// Throws Error (refused) for the first of namedVfs().
void requireUnnamedVfs(const Plan& plan, const AskedDefinitions& definitions, Tools& tools);

/// The steps that remove VFs which nobody needs once the plan's steps have ended their leases, and
/// which the plan does not remove. `definitions`: those of definitionsFor(). Warns of VFs that stay
/// only because a definition names them.
std::vector<Step> findUnusedVfs(const Plan& plan, const AskedDefinitions& definitions, Tools& tools,
                                std::vector<std::string>& warnings);

/// Removes VFs which nobody needs once the plan's inverses have ended its leases. The plan's other
/// inverses have run. VFs that somebody begins to use at this moment stay.
void removeUnusedVfs(const Plan& plan, const AskedDefinitions& definitions, HolderGate& gate,
                     Tools& tools, std::vector<std::string>& warnings);

/// Whether a step of a rollback ends a lease.
bool endsLease(const std::vector<Action>& inverse);

}  // namespace vfpass::apply
