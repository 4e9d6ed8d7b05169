#pragma once

#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// The best matching VFIO driver for a device among the aliases `vfio_pci:...` in `aliases` (the
/// text of modules.alias): the one whose pattern has the fewest wildcards. `modalias` is the
/// device's own, `pci:v000010DEd00002342...`. vfio-pci when nothing matches; drivers that vfpass
/// does not support (isVfioDriver) are ignored.
std::string bestVfioDriver(std::string_view modalias, std::string_view aliases);

/// The same for the function in sysfs directory `directory`, with the running kernel's modules.
/// vfio-pci for a captured tree, which has no modules.alias.
std::string bestVfioDriver(const Root& root, const std::string& directory);

}  // namespace vfpass::host
