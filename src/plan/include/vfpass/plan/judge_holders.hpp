#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/domain_facts.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Addresses of a PF's VFs, by PF and index.
using VfAddresses = std::map<PciAddress, std::map<unsigned, PciAddress>>;

/// PFs whose VFs an action changes; the addresses of these VFs must be known.
std::set<PciAddress> changedPfs(const Action& action);

/// The functions that an action binds, configures, resets, unbinds or removes, and whose holders it
/// would disrupt; for a creation of VFs that disables a RoCE LAG the PF whose RDMA users lose their
/// device. VFs that are not in `addresses` do not exist and have no holder. Empty for an
/// action that changes no device.
std::vector<PciAddress> touchedFunctions(const Action& action, const VfAddresses& addresses);

/// The problem with touching a device that `holder` uses; nullopt where an allowance waives it:
/// `netdev-in-use` waives a netdev, `unknown-holder` a holder that cannot be observed. A write that
/// still waits in the kernel, an open VFIO device, an RDMA user and a disk in use are never waived.
std::optional<Objection> objectionTo(const Holder& holder, const std::set<Allowance>& allow);

/// The problems with touching one function.
std::vector<Objection> objectToHolders(const PciAddress& function,
                                       const std::vector<Holder>& holders,
                                       const std::set<Allowance>& allow);

/// The problem with a device (`name`) whose lock the kernel holds: a driver is being bound to it or
/// taken from it, or hangs, so its driver and driver_override are not known.
Objection objectionToLock(const std::string& name);

/// What one domain may do despite a holder.
struct HolderTerms {
  Uuid domain;
  std::set<Allowance> allow;
  /// Devices that the plan unplugs from the running domain before it touches them; until then the
  /// domain's own QEMU holds them.
  std::set<PciAddress> unplugged;
  /// Devices that the plan has plugged into the running domain and takes back: they are not
  /// configured while the domain's own QEMU holds them.
  std::set<PciAddress> takenBack = {};
};

/// True when the domain's own QEMU may hold the device during this action: only attach, which
/// changes switch settings (VLAN, rate, trust) of a running guest.
bool mayRunUnderOwnGuest(PlanKind kind, const Action& action);

/// The problems with a whole plan, without duplicates.
std::vector<Objection> objectToHolders(const Plan& plan, const VfAddresses& addresses,
                                       const std::vector<Holder>& holders,
                                       const HolderTerms& terms);

/// The risks that a plan's leases accept: the leases in its steps and in their inverses.
std::set<Allowance> allowancesOf(const Plan& plan);

/// Devices that the plan unplugs from its running domain, and those that it plugs into it.
std::set<PciAddress> unpluggedBy(const Plan& plan);
std::set<PciAddress> pluggedBy(const Plan& plan);

/// Problems of a plan whose steps touch a device in the live XML of another active domain. The
/// kernel shows no holder until that domain's QEMU opens the device; libvirt lists the device as
/// soon as the start begins.
std::vector<Objection> objectToActiveClaims(const Plan& plan, const Inventory& inventory,
                                            const std::vector<DomainSummary>& domains);

}  // namespace vfpass::plan
