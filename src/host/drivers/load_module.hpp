#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace vfpass::host {

/// True for the modules that vfpass may load: VFIO drivers (isVfioDriver) and SoftRoCE.
bool isLoadable(std::string_view module);

/// Runs /sbin/modprobe for this module, with an empty environment and no inherited descriptors.
/// Throws Error when the module is not loadable, when modprobe fails, or when it does not finish
/// before the deadline.
void loadModule(const std::string& module, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
