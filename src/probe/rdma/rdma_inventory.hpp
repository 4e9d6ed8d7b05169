#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// `{libibverbs: {...}, devices: [...]}`: devices as the kernel shows them, and the result of
/// opening each with the library.
nlohmann::json rdmaInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
