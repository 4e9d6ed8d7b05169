#pragma once

#include <filesystem>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::inventory {

/// All SR-IOV capable NICs of the host below `root`, and of the functions at these addresses those
/// that exist; with model names from libpci's id database.
Inventory readInventory(const std::filesystem::path& root = "/",
                        const std::vector<PciAddress>& functions = {});
Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions = {});

}  // namespace vfpass::inventory
