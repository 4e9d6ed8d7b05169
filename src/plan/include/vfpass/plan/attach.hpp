#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/claim.hpp"
#include "vfpass/domain_setting.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/network_pool.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {

/// Everything that attach looks at, gathered beforehand.
struct AttachInput {
  Mapping mapping;                              ///< `near` resolved (resolve_near.hpp)
  std::map<std::string, Objection> nearFaults;  ///< of entries for which that failed
  HostPolicy policy;
  Inventory inventory;
  Uuid domain;
  std::string domainName;
  bool active = false;
  Scope scope;
  std::set<std::string> plugged;       ///< entries whose device the running domain has
  std::set<std::string> pluggable;     ///< leased entries whose place is free in the running domain
  std::vector<Lease> liveLeases;       ///< in the running domain's metadata, sealed ones only
  std::vector<Lease> leases;           ///< of all domains
  std::vector<DomainSummary> domains;  ///< all domains of the host
  std::vector<NetworkPool> pools;      ///< of all libvirt networks, also of inactive ones
  std::vector<Mapping> otherMappings;  ///< for addresses that are spoken for
  /// Free places, best first. Of a running domain all there are: none too few is an objection.
  std::vector<GuestPlacement> placements;
  /// With `topology: mirror`, what the domain has without anything of ours. Without a machine all
  /// places are flat ones.
  std::optional<GuestMachine> machine;
  HypervisorVersions versions;
  Topology topology;  ///< the host's PCI tree
  /// What the persistent XML lacks for the mapping's devices, and requests that cannot be met.
  std::vector<DomainSetting> settings;
  std::vector<Objection> settingFaults;
  bool xmlCurrent = false;       ///< the persistent XML already carries the leases of this domain
  bool liveCurrent = true;       ///< the running domain's metadata, if any, are sealed
  std::uint64_t generation = 0;  ///< for leases that are new or changed
  std::string bootId;
};

/// What attach would do. With objections there are no steps.
struct AttachDecision {
  Plan plan;
  std::vector<Lease> leases;  ///< the domain's leases afterwards
  std::vector<Objection> objections;
  /// Of the input's settings those that the domain does not have yet.
  std::vector<DomainSetting> settings;
};

/// True when attach makes this setting: all proposed ones with `domain-settings: apply`, without it
/// what an entry of the mapping asks for by name.
bool isApplied(const Mapping& mapping, const DomainSetting& setting);

/// Ways in which the mapping asks for something else than what the domain's leases say, one line
/// each with what attach would do; empty: attach has nothing to decide anew.
std::vector<std::string> mappingDifferences(const AttachInput& input,
                                            const std::vector<Lease>& wanted);

/// Decides VF, MAC and guest address of every entry of the mapping (kept from earlier leases where
/// they still fit), and the steps that bring host and XML there.
AttachDecision planAttach(const AttachInput& input);

}  // namespace vfpass::plan
