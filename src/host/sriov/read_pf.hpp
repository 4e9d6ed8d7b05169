#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/host/vital_product_data.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The PF without its VFs, attributes and addresses: enough to select it. With its serial number
/// comes its role, NIC or NVLink management. Nullopt when there is no
/// function at that address.
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

}  // namespace vfpass::host
