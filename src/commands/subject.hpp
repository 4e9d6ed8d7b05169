#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::commands {

/// One VM with its mapping.
struct Subject {
  Mapping mapping;
  DomainDescription domain;
  std::vector<Mapping> otherMappings;
  std::map<std::string, plan::Objection> nearFaults;  ///< entries for which `near` finds no PF
  std::vector<std::string> nearReasons;               ///< why the other entries have their PFs
};

/// Throws (bad input) the mistakes of the mapping with this `vm:` and its conflicts with others, as
/// far as they are known without libvirt. A VM whose mapping names it otherwise has none here.
void requireSoundMapping(Session& session, const std::string& vm);

/// The domain `vm` (name or UUID) and its mapping. Throws with exit code 2 if either is missing, or
/// the mapping has mistakes or conflicts with another one.
Subject findSubject(Session& session, const std::string& vm);

/// The same for a domain that has been read already.
Subject findSubject(Session& session, const DomainDescription& domain);

/// The file of a VM's mapping.
struct MappingFile {
  std::string file;                  ///< empty: the VM has none
  const Mapping* mapping = nullptr;  ///< null: the file has mistakes, or there is none
};

/// Finds the file by its `vm:`, otherwise by the domain's other identifier (name or UUID), which
/// only libvirt knows: for commands that also work without it. `unanswered`, if not null, gets the
/// reason if it does not answer. The result is valid as long as the configuration.
MappingFile findMappingFile(Session& session, const std::string& vm,
                            std::optional<Error>* unanswered = nullptr);

/// The mapping in that file. Warns if libvirt does not answer.
const Mapping* mappingNamedBy(Session& session, const std::string& vm);

/// Throws (bad input) the mistakes of the file that is the mapping of this domain, if it has any.
void throwIfFaulty(Session& session, const std::string& name, const std::string& uuid);

/// Throws (bad input) that the domain has no mapping: the mistakes of its file if it has any.
[[noreturn]] void throwNoMapping(Session& session, const std::string& name,
                                 const std::string& uuid);

/// `--live` and `--config`.
struct ScopeOptions {
  bool live = false;
  bool config = false;
};

/// Without an option: the persistent configuration if there is one, and the live configuration if
/// the domain is running. Throws (bad input) if the domain does not have the requested one.
Scope scopeFor(const DomainDescription& domain, const ScopeOptions& options);

/// The leases in the running domain's metadata. If that is not sealed, the leases in `leases` of
/// the devices that the domain has: a rollback seals what it restores, so the source must be
/// trusted.
std::vector<Lease> liveLeases(Session& session, const DomainDescription& domain,
                              const std::vector<Lease>& leases);

/// PFs and PCI functions that attaching this subject can change, to be locked by the caller.
std::vector<PciAddress> pfsOf(const Subject& subject, const Inventory& inventory,
                              const std::vector<Lease>& leases);

/// PFs and PCI functions of these leases.
std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases);

/// Leases of one domain.
std::vector<Lease> leasesOf(const std::vector<Lease>& leases, const Uuid& domain);

/// Resolves `pf: {near: ...}` from the host's topology, in the subject's mapping and in those other
/// mappings that also claim a VF by its number. Does nothing if no mapping uses `near`.
void settleNear(Session& session, Subject& subject, const std::vector<Lease>& leases);

/// Returns the mappings with `near` replaced by the address of the PF that attach would choose now;
/// entries without a PF near enough keep `near`. For commands that do not query libvirt: a
/// mapping's leases are found by the domain's name or UUID.
std::vector<Mapping> nearSettled(Session& session, const Topology& topology,
                                 std::vector<Mapping> mappings);

}  // namespace vfpass::commands
