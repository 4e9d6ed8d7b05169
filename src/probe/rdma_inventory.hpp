#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sysfs_reader.hpp"

namespace vfpass::probe {

/// `{libibverbs: {...}, devices: [...]}`: devices as the kernel shows them, and what the library
/// says when each is opened.
nlohmann::json rdmaInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
