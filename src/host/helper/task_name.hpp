#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Name of a guarded child in /proc/PID/comm while it does not work on a device.
inline constexpr const char* idleTaskName = "vfpass-guarded";

/// Its name while it works on a device: `vf0000:3b:00.1`. Any process can have such a name: it
/// proves nothing (call_mark.hpp). At most 15 characters (TASK_COMM_LEN): an address whose domain
/// has more than five digits is written without separators.
std::string taskName(const PciAddress& device);

/// The device in such a name; nullopt for any other name.
std::optional<PciAddress> deviceInTaskName(std::string_view name);

}  // namespace vfpass::host
