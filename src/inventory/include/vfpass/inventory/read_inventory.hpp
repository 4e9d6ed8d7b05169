#pragma once

#include <filesystem>

#include "vfpass/inventory.hpp"

namespace vfpass::inventory {

/// All SR-IOV capable NICs of the host below `root`, with model names from libpci's id database.
Inventory readInventory(const std::filesystem::path& root = "/");

}  // namespace vfpass::inventory
