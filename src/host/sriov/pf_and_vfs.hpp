#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sriov/vf_port.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::host {

// What SystemKernel does with PFs and their VFs.

// read_pf.cpp

/// The PF without its VFs, attributes and addresses: enough to select it. With its serial number
/// comes its role, NIC or NVLink management. Nullopt when there is no function at that address.
std::optional<PhysicalFunction> readPfIdentity(const Root& root, const PciAddress& address,
                                               Serials serials = Serials::read);

/// How much is read of each PF.
enum class PfDetails {
  all,
  /// Without driver overrides and users of VFs, and without upper devices and addresses of the PF,
  /// which take most of the system calls. A group that changes meanwhile may be shown wrongly.
  table
};

/// The PFs that exist with their VFs and, on the running system, their attributes. Of VFs that are
/// not in `wanted` (null: all are wanted), only index, address and attributes are read. Throws
/// TimeoutError when rtnetlink hangs.
std::vector<PhysicalFunction> readPhysicalFunctions(const Root& root,
                                                    const std::vector<PciAddress>& addresses,
                                                    std::chrono::milliseconds netlinkDeadline,
                                                    const std::vector<PciAddress>* wanted = nullptr,
                                                    PfDetails details = PfDetails::all,
                                                    Serials serials = Serials::read);

/// Addresses of all SR-IOV capable functions that are NICs: by class, by a netdev, or by the driver
/// mlx5_core.
std::vector<PciAddress> findPhysicalFunctions(const Root& root);

// create_remove_vfs.cpp

/// Creates VFs on a PF that has none, with the requested probing while they appear. Afterwards the
/// previous value of sriov_drivers_autoprobe is restored, except after a TimeoutError: the kernel
/// may then still create the VFs and must use the requested value; RemoveVfs::autoprobe restores
/// it. With CreateVfs::autoprobe, that value is set afterwards instead, and a PF that already has
/// this many VFs keeps them. Throws CreationLeft if something is left of a creation that failed,
/// and judges by the VFs if the helper process was killed before it answered. `removal` is the
/// deadline for removing VFs again if too few appear. Returns warnings: what the kernel log did not
/// tell.
std::vector<std::string> createVfs(const Root& root, KernelWriter& writer, const CreateVfs& action,
                                   std::chrono::milliseconds deadline,
                                   std::chrono::milliseconds removal);

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

// configure_vfs.cpp

/// Names of the PF whose VFs are configured, for messages.
struct PortNames {
  std::string netdev;
  std::string driver;
  /// This process may configure links (CAP_NET_ADMIN), so EPERM comes from the driver.
  bool privileged = false;
  std::string deniedRemedy = {};  ///< for that EPERM
};

/// Which attributes are sent, see Kernel::restoreVfs().
enum class Sent { differing, all };

/// Sets the attributes of the VFs. All attributes that differ go into one message. If the driver
/// refuses it, each attribute is sent alone; only the answer to that shows whether it took effect,
/// because mlx5 stores and reports some refused values. A refused attribute gets its previous value
/// again. `deadline` is the time within which an accepted value must read back; only a GUID may
/// stay unreported. EPERM is a refusal, too, if this process is privileged. When a required
/// attribute is refused, all changes are rolled back and Error is thrown. Other refused attributes
/// are returned. `otherwise` is ConfigureVfs::otherwise.
std::vector<RefusedAttribute> configureVfs(VfPort& port, const std::vector<VfChange>& changes,
                                           const PortNames& names,
                                           std::chrono::milliseconds deadline,
                                           const VfSettings& otherwise = {},
                                           Sent sent = Sent::differing);

// attribute_refusal.cpp: an errno as the answer to an attribute.

bool isPermission(int error);

/// Whether the driver does not take the attribute or the value, as opposed to a failure.
bool isRefusal(Attribute attribute, int error);

/// How the attribute gets a value that the driver accepts.
std::string attributeRemedy(Attribute attribute);

/// The remedy for an error other than isPermission().
std::string refusalRemedy(Attribute attribute, int error);

}  // namespace vfpass::host
