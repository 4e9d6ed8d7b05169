#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// What a guarded child is called in /proc/PID/comm while it has nothing to do with a device.
inline constexpr const char* idleTaskName = "vfpass-guarded";

/// What it is called while it works on a device: `vf0000:3b:00.1`, so that later processes see for
/// which device the kernel still keeps it. At most 15 characters (TASK_COMM_LEN): an address whose
/// domain has more than five digits is written without separators.
std::string taskName(const PciAddress& device);

/// The device of such a name; nullopt for any other name.
std::optional<PciAddress> deviceInTaskName(std::string_view name);

}  // namespace vfpass::host
