#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// What creating or removing VFs of this PF disrupts on the host, one phrase each; empty if
/// nothing: a netdev below a bond, bridge or VLAN, a netdev with IP addresses, and, unless it is
/// known to be in switchdev mode, a RoCE LAG, which mlx5 disables when VFs are created
/// (mlx5_lag_disable_change).
std::vector<std::string> disruptionsOf(const PhysicalFunction& pf);

/// CreateVfs::lagDevicePf of a creation.
std::optional<PciAddress> lagDevicePf(const PhysicalFunction& pf);

/// The problem with creating VFs of this PF for a VM without `allow: [disruption]`: it ends a RoCE
/// LAG. nullopt if there is none. Upper devices and addresses alone need no consent: mlx5 of Linux
/// 6.1 creates and removes VFs without a change of the PF's netdev, carrier or addresses (seen on
/// the model of a card).
std::optional<Objection> objectToCreation(const PhysicalFunction& pf,
                                          const std::set<Allowance>& allow);

/// The driver and driver_override that a VF should have.
struct VfBinding {
  std::string driver;
  std::string driverOverride;
};

/// Why new VFs are configured.
inline constexpr const char* leftOverReason =
    "a driver can keep values that were set before the VF existed";

/// The values of new VFs (ConfigureVfs::otherwise). `driven`: the host's driver is bound to some,
/// so that the driver's default of the spoof check stays: with a zero MAC the check drops every
/// frame of the VF. If one of the `leases` of the PF keeps its VF's MAC, the MACs stay: somebody
/// may have set it before the VF existed.
VfSettings newVfSettings(const PhysicalFunction& pf, bool driven, const std::vector<Lease>& leases);

/// Whether attach creates VFs of this PF that the host's driver then probes (host.yaml).
bool probesNewVfs(const PhysicalFunction& pf, const HostPolicy& policy);

/// Whether addVectorsOfOthers() sets the interrupt vectors that this lease states for its VF of the
/// PF: no guest runs with the VF, and it does not exist yet or has no driver, as after a reboot.
/// The kernel changes the number only then.
bool canTakeVectors(const Lease& lease, const PhysicalFunction& pf);

/// Adds the interrupt vectors that other domains than `own` have leased for the `count` VFs that
/// the PF has or gets. The VFs of a PF share its vectors, and new VFs of mlx5 have an even share: a
/// domain that starts first and has more would not get them.
void addVectorsOfOthers(const PhysicalFunction& pf, unsigned count, const std::vector<Lease>& known,
                        const Uuid& own, ConfigureVfs& configure, ConfigureVfs& undo);

/// Creates `count` VFs on the PF and gives them the settings (MAC, VLAN, rate and so on) of the VFs
/// with the same index in `before`, as far as they were readable, and neutral values otherwise. A
/// VF that was migratable is so again. Drivers read addresses when they probe, so VFs with
/// addresses are bound last.
std::vector<Action> recreateVfs(const PhysicalFunction& before, unsigned count,
                                const std::function<VfBinding(unsigned)>& bindingOf,
                                std::optional<bool> autoprobe = std::nullopt);

/// The inverse of removing the VFs of a PF: creates as many again, with drivers and attributes as
/// before.
std::vector<Action> undoRemoval(const PhysicalFunction& before);

/// The attributes that the PF's driver cannot set in its eswitch mode.
std::set<Attribute> lackingAttributes(const PhysicalFunction& pf);

/// An objection if the entry, for VF `index` of a PF in switchdev mode, needs an attribute that the
/// driver cannot set there: one that is required, or a VLAN, which isolates the guest.
void checkSwitchdev(const MappedVf& entry, const PhysicalFunction& pf, unsigned index,
                    std::vector<Objection>& objections);

/// Names what the mapping states, or has by default, and the leases leave out for the mode.
std::vector<std::string> switchdevNotes(const AttachInput& input, const std::vector<Lease>& leases);

}  // namespace vfpass::plan
