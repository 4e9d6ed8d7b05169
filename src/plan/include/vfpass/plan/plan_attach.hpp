#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/fabric_partition.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {

/// The complete input of attach.
struct AttachInput {
  Mapping mapping;                              ///< `near` is resolved (resolveNear())
  std::map<std::string, Objection> nearFaults;  ///< of entries whose `near` could not be resolved
  HostPolicy policy;
  Inventory inventory;
  Uuid domain;
  std::string domainName;
  bool active = false;
  unsigned vcpus = 0;                            ///< that the domain starts with; 0: unknown
  std::string launchSecurity = {};               ///< type of its `<launchSecurity>`; empty: none
  VfioBackend backend = VfioBackend::container;  ///< that it starts with (chooseBackend())
  std::string backendNote = {};                  ///< the reason; empty: nothing to tell
  Scope scope;
  std::set<std::string> plugged;  ///< entries whose device the running domain has
  std::set<std::string>
      pluggable;  ///< leased entries whose guest address is free in the running domain
  std::vector<Lease> liveLeases;  ///< in the running domain's metadata, sealed ones only
  std::vector<Lease> leases;      ///< of all domains
  /// Entries whose device this domain has leased under another name, with that name. The leases
  /// have the new name already; planAttach() finds them.
  std::map<std::string, std::string> renamed = {};
  std::vector<DomainSummary> domains;       ///< all domains of the host
  std::vector<DomainInterface> interfaces;  ///< of this domain; partners of teamed VFs
  /// The elements of this domain that vfpass did not create or has left to it, in its persistent
  /// configuration and in the running domain; `adopt: true` takes one over.
  std::vector<HostElement> elements = {};
  std::vector<HostElement> liveElements = {};
  std::string manager = {};            ///< another program that manages this domain; empty: none
  bool transient = false;              ///< the domain has no persistent configuration
  std::vector<NetworkPool> pools;      ///< of all libvirt networks, also of inactive ones
  std::vector<std::string> unknown;    ///< Definitions::unknown
  std::vector<Mapping> otherMappings;  ///< their addresses are reserved
  /// Free guest addresses, best first; of a running domain all that exist. Too few are a problem
  /// only in a running domain.
  std::vector<GuestPlacement> placements;
  /// With `topology: mirror`, the domain without vfpass's devices and controllers. Without a
  /// machine all guest addresses are flat.
  std::optional<GuestMachine> machine;
  HypervisorVersions versions;
  /// Of the running kernel, read if an entry has `migration: vfio`; nullopt: unknown.
  std::optional<Version> kernel = {};
  std::optional<bool> hasMigrationDriver = {};  ///< mlx5MigrationDriver
  Topology topology;                            ///< the host's PCI tree
  /// Of the fabric manager, if the mapping has `nvlink: partition`. nullopt: `partitionProblem`
  /// says why they are not known; empty: a captured tree lacks them.
  std::optional<std::vector<FabricPartition>> partitions = {};
  std::string partitionProblem = {};
  bool fabricClient = false;  ///< fmpm is installed
  /// Settings that the persistent XML lacks for the mapping's devices, and requests that cannot be
  /// met.
  std::vector<DomainSetting> settings;
  std::vector<Objection> settingFaults;
  /// Devices, by alias, for which the domain's own XML overrides x-speed or x-width.
  std::set<std::string> ownLinkSpeeds = {};
  bool xmlCurrent = false;       ///< the persistent XML already carries the leases of this domain
  bool liveCurrent = true;       ///< the running domain's metadata, if any, are sealed
  std::uint64_t generation = 0;  ///< for leases that are new or changed
  std::string bootId;
};

/// The result of planning an attach. The plan has no steps when there are problems.
struct AttachDecision {
  Plan plan;
  std::vector<Lease> leases;  ///< the domain's leases afterwards
  std::vector<Objection> objections;
  /// The settings of the input that the domain does not have yet.
  std::vector<DomainSetting> settings;
};

/// One line for each lease whose VF existed before and cannot be restored: the kernel did not
/// report its attributes, because a reply has room for some VFs only (vf_message.cpp), or they are
/// those of an attach whose record was lost. Only on the running system, because a captured tree
/// has no attributes.
std::vector<std::string> unreadOriginals(const AttachInput& input,
                                         const std::vector<Lease>& leases);

/// True when attach applies this setting: all proposed ones with `domain-settings: apply`,
/// otherwise only those that an entry of the mapping requests by name.
bool isApplied(const Mapping& mapping, const DomainSetting& setting);

/// Differences between the mapping and the domain's leases, one line each with the change that
/// attach would make; empty if there are none.
std::vector<std::string> mappingDifferences(const AttachInput& input,
                                            const std::vector<Lease>& wanted);

/// Decides VF, MAC and guest address of every entry of the mapping (kept from earlier leases where
/// they still fit), and the steps that bring host and XML to that state.
AttachDecision planAttach(const AttachInput& input);

/// The decision of planAttach(), also against the claims of active domains. Throws all objections
/// at once.
AttachDecision decideAttach(const AttachInput& input);

/// One line for each function of the mapping: the VFIO driver that it will be bound to and how it
/// is reset; then one line about NVLink if a GPU is on a board with NVSwitches, and those about a
/// confidential guest.
std::vector<std::string> describeDevices(const AttachInput& input);

/// Which partition of the fabric manager holds the GPUs, and how it gets active, in one line; empty
/// without `nvlink: partition`.
std::string partitionNote(const AttachInput& input);

}  // namespace vfpass::plan
