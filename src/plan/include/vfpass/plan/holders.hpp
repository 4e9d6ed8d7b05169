#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Addresses of a PF's VFs, by PF and index.
using VfAddresses = std::map<PciAddress, std::map<unsigned, PciAddress>>;

/// PFs whose VFs an action changes, so that their addresses have to be known.
std::set<PciAddress> changedPfs(const Action& action);

/// The functions that an action takes, rewrites, resets, unbinds or removes: those whose holder
/// would notice. VFs that are not in `addresses` do not exist, and nobody holds them. None for an
/// action that changes no device.
std::vector<PciAddress> touchedFunctions(const Action& action, const VfAddresses& addresses);

/// Why a device cannot be touched while `holder` has it, or nullopt where an allowance waives it:
/// `netdev-in-use` a netdev, `unknown-holder` what cannot be observed. A write that still waits in
/// the kernel, an open VFIO device, an RDMA user and a disk in use are never waived.
std::optional<Objection> objectionTo(const Holder& holder, const std::set<Allowance>& allow);

/// The objections to touching one function.
std::vector<Objection> objectToHolders(const PciAddress& function,
                                       const std::vector<Holder>& holders,
                                       const std::set<Allowance>& allow);

/// What one domain may do in spite of a holder.
struct HolderTerms {
  Uuid domain;
  std::set<Allowance> allow;
  /// Devices that the plan takes out of the running domain before it touches them: until then its
  /// own QEMU holds them.
  std::set<PciAddress> unplugged;
};

/// Whether the domain's own QEMU may hold the device during this action: attach changes switch
/// settings of a running guest (VLAN, rate, trust), and nothing else.
bool mayRunUnderOwnGuest(PlanKind kind, const Action& action);

/// The objections to a whole plan, each once.
std::vector<Objection> objectToHolders(const Plan& plan, const VfAddresses& addresses,
                                       const std::vector<Holder>& holders,
                                       const HolderTerms& terms);

/// The risks that the leases of a plan accept: of those in its steps, and in their inverses.
std::set<Allowance> allowancesOf(const Plan& plan);

/// Devices that the plan unplugs from its running domain.
std::set<PciAddress> unpluggedBy(const Plan& plan);

}  // namespace vfpass::plan
