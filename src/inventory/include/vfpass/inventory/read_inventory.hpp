#pragma once

#include <filesystem>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::inventory {

/// All SR-IOV capable NICs of the host below `root`, and those of the given functions that exist,
/// with model names from libpci's ID database.
Inventory readInventory(const std::filesystem::path& root = "/",
                        const std::vector<PciAddress>& functions = {});
Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions = {});

}  // namespace vfpass::inventory
