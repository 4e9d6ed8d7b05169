#pragma once

#include <chrono>
#include <vector>

#include "kernel_write.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Creates VFs on a PF that has none, with probing as asked for while they appear; the PF's own
/// setting of probing is restored in every case but one: after a TimeoutError the kernel may still
/// make the VFs, and they have to find what was asked for. RemoveVfs::autoprobe restores it then.
/// With CreateVfs::autoprobe that is the setting, and a PF that has this many VFs already keeps
/// them.
void createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
               std::chrono::milliseconds deadline);

/// Whether the kernel offers new VFs of this PF to drivers.
void setAutoprobe(KernelWriter& writer, const PciAddress& pf, bool on);

/// `inFlight`: also VFs whose creation a killed process has left running in the kernel. Writing the
/// count takes the device's lock, so it waits for that creation (sriov_numvfs_store).
enum class RemoveScope { present, inFlight };

/// Removes all VFs of `pf`, as just read. `holders` are those of its VFs. Throws Error (refused)
/// while a VF is bound to a VFIO driver or held: the caller has asked about all of that before, and
/// this is the last guard. A holder of kind `unknown` passes, because the caller may have been
/// allowed it; so does a write that still waits when VFs in flight are removed.
void removeVfs(const Root& root, KernelWriter& writer, const PhysicalFunction& pf,
               const std::vector<Holder>& holders, RemoveScope scope,
               std::chrono::milliseconds deadline);

}  // namespace vfpass::host
