#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The values that vfpass itself sets on the VF: those that its driver has not refused. For an
/// <interface>, libvirt sets MAC and VLAN.
VfSettings settingsToApply(const Lease& lease);

/// The lease, with no refusals of what it states: the driver is asked again.
Lease askingAgain(Lease lease);

/// The lease, with neutral values for settings that an earlier version of it made on the same VF
/// and that it no longer has, such as the rate limit of a running guest whose mapping has none now.
Lease withoutEarlierSettings(const Lease& earlier, Lease lease);

/// The values that the VF gets when its lease ends: the recorded ones, and neutral ones for
/// settings of the lease that could not be observed before.
VfSettings settingsToRestore(const Lease& lease);

/// The values that roll back the lease's settings on a VF that now has `seen`.
VfSettings settingsToUndo(const Lease& lease, const VfSettings& seen);

/// Neutral values for a VF between two owners, limited to those that its driver reports or the
/// lease set, and has not refused.
VfSettings neutralValues(const Lease& lease, const VfSettings& seen);

/// Adds the lease's values, and the values that roll them back, to the changes of its PF's VFs, if
/// they differ from the values `seen`.
void addChange(const Lease& lease, const VfSettings& seen, ConfigureVfs& configure,
               ConfigureVfs& undo);

/// The binding that the VF has now, to roll back another one.
BindDriver bindingOf(const Lease& lease, const VirtualFunction& vf);

/// Why a device with this driver is bound to another one; empty: it has none.
std::string reasonToBind(const std::string& driver);

/// Binds the VF to vfio-pci, for attach and prepare; no step if it is bound already (and
/// migratable, if the lease needs that), or if libvirt binds it (`managed: yes`). `vf` is nullptr
/// if the plan creates it.
void bindVf(const Lease& lease, const VirtualFunction* vf, const std::string& reason, bool disrupts,
            std::vector<Step>& steps);

/// Steps before and after a change of values while the VF has no driver.
struct Reprobe {
  std::vector<Step> before;
  std::vector<Step> after;

  /// The VF as it is between the two.
  [[nodiscard]] VirtualFunction between(VirtualFunction vf) const;
};

/// Unbinds the VF's driver around a change to `wanted` that needs it, and binds it again if the
/// plan does not bind another one: with `managed: yes`, the VF stays with the driver that it has.
/// The kernel changes some values only while no driver is bound (Change::unbound). GUIDs take
/// effect at the next probe of the host's driver. Empty in all other cases.
Reprobe reprobeAround(const Lease& lease, const VirtualFunction& vf, const VfSettings& wanted);

/// The same for a VF that the plan creates and that the driver of its PF then probes.
Reprobe reprobeNew(const Lease& lease, const PhysicalFunction& pf);

// Steps for leases of PCI functions. Unlike VFs, they are neither created nor configured; only the
// driver changes.

/// Binds the function to the lease's VFIO driver, for attach and prepare; no step if it is bound
/// already.
void bindFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

/// Binds the function to its driver from before the first lease; no step if the function no longer
/// exists.
void restoreFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

/// Activates or deactivates the partition of the leases' GPUs; no step if none of them is in one
/// that vfpass activates.
void setPartition(const std::vector<Lease>& leases, bool active, const std::string& reason,
                  std::vector<Step>& steps);

/// Steps between two runs of a guest: reset, neutral values, and the lease back to reserved.
std::vector<Step> stepsBetweenRuns(const std::vector<Lease>& leases, const Inventory& inventory,
                                   const std::string& bootId, const std::string& reason);

}  // namespace vfpass::plan
