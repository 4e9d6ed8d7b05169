#pragma once

#include <filesystem>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/host/vital_product_data.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::inventory {

/// All SR-IOV capable NICs of the host below `root`, and those of the given functions that exist.
Inventory readInventory(const std::filesystem::path& root = "/",
                        const std::vector<PciAddress>& functions = {});
Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions = {},
                        host::Serials serials = host::Serials::read);

/// Reads the serial numbers of those of the inventory's PFs that are in `pfs` and have none yet.
void addSerials(const host::Root& root, const std::vector<PciAddress>& pfs, Inventory& inventory);

/// The same PFs without their VFs, attributes and addresses: enough to select PFs.
Inventory readPfIdentities(host::Root root, host::Serials serials = host::Serials::read);

/// All PFs for a list of PFs: of their VFs only index and address.
Inventory readPfList(host::Root root);

/// The host's NICs that are neither PFs of readPfList() nor their VFs: without SR-IOV capability.
/// Functions that manage NVLink have that role.
std::vector<Device> readOtherNics(const host::Root& root, const Inventory& inventory);

/// All PFs for a list of VFs: without driver overrides and users of VFs, and without upper devices
/// and addresses of PFs.
Inventory readVfList(host::Root root, host::Serials serials = host::Serials::read);

}  // namespace vfpass::inventory
