#pragma once

#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// The VFIO driver that fits a device best, among the aliases `vfio_pci:...` in `aliases` (the text
/// of modules.alias): the one whose pattern has the fewest wildcards. `modalias` is the device's
/// own, `pci:v000010DEd00002342...`. vfio-pci where nothing fits, or what fits is no VFIO driver
/// that this project knows (isVfioDriver).
std::string bestVfioDriver(std::string_view modalias, std::string_view aliases);

/// The same for the function in sysfs folder `folder`, with the running kernel's modules. A
/// captured tree has no modules.alias, and then it is vfio-pci.
std::string bestVfioDriver(const Root& root, const std::string& folder);

}  // namespace vfpass::host
