#pragma once

#include <chrono>
#include <vector>

#include "sysfs/kernel_write.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Creates VFs on a PF that has none, with the requested probing while they appear. Afterwards the
/// previous value of sriov_drivers_autoprobe is restored, except after a TimeoutError: the kernel
/// may then still create the VFs and must use the requested value; RemoveVfs::autoprobe restores
/// it. With CreateVfs::autoprobe, that value is set afterwards instead, and a PF that already has
/// this many VFs keeps them. Throws CreationLeft if something is left of a creation that failed,
/// and judges by the VFs if the helper process was killed before it answered. `removal` is the
/// deadline for removing VFs again if too few appear.
void createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
               std::chrono::milliseconds deadline, std::chrono::milliseconds removal);

/// Sets whether the kernel probes drivers for new VFs of this PF.
void setAutoprobe(KernelWriter& writer, const PciAddress& pf, bool on);

/// `inFlight` includes VFs whose creation is still running in the kernel after its process was
/// killed. Writing the count takes the device's lock and so waits for it (sriov_numvfs_store).
enum class RemoveScope { present, inFlight };

/// Removes all VFs of `pf`, which was just read. `holders` are the holders of its VFs. Throws Error
/// (refused) while a VF is bound to a VFIO driver or has a holder. The caller has already checked
/// this; it is the last safeguard. A holder of kind `unknown` is ignored, because the mapping may
/// allow it; so is a pending write when the scope is `inFlight`.
void removeVfs(const Root& root, KernelWriter& writer, const PhysicalFunction& pf,
               const std::vector<Holder>& holders, RemoveScope scope,
               std::chrono::milliseconds deadline);

}  // namespace vfpass::host
