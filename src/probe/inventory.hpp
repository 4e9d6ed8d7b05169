#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sysfs_reader.hpp"

namespace vfpass::probe {

/// What the guest has for RDMA and GPUs. What is missing or could not be read is text in the place
/// where it would be, and never a failure; see docs/probe.md for the members.
nlohmann::json readInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
