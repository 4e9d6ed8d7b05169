#pragma once

#include <chrono>

#include "kernel_write.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

/// Creates VFs on a PF that has none, with probing as asked for while they appear; the PF's own
/// setting of probing comes back in every case.
void createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
               std::chrono::milliseconds deadline);

/// Whether the kernel offers new VFs of this PF to drivers.
void setAutoprobe(KernelWriter& writer, const PciAddress& pf, bool on);

/// `inFlight`: also VFs whose creation a killed process has left running in the kernel. Writing the
/// count takes the device's lock, so it waits for that creation (sriov_numvfs_store).
enum class RemoveScope { present, inFlight };

/// Removes all VFs of `pf`, as just read. Throws Error (refused) while one of them is in use.
void removeVfs(const Root& root, KernelWriter& writer, const PhysicalFunction& pf,
               RemoveScope scope, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
