#pragma once

#include <chrono>
#include <optional>
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

/// Whether the running kernel has this VFIO driver: it is loaded, or modules.alias names its
/// module. nullopt if there is no such file, as in a captured tree.
std::optional<bool> hasVfioDriver(const Root& root, const std::string& driver);

/// Whether VFIO of the running kernel has devices for iommufd, /dev/vfio/devices/vfioN
/// (CONFIG_IOMMUFD and CONFIG_VFIO_DEVICE_CDEV, which Debian's kernels lack): before VFIO is
/// loaded, whether there is iommufd. nullopt: not known, as in a captured tree.
std::optional<bool> hasIommufd(const Root& root);

/// True for the modules that vfpass may load: VFIO drivers (isVfioDriver) and SoftRoCE.
bool isLoadable(std::string_view module);

/// Runs /sbin/modprobe for this module, with an empty environment and no inherited descriptors.
/// Throws Error when the module is not loadable, when modprobe fails, or when it does not finish
/// before the deadline.
void loadModule(const std::string& module, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
