#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace vfpass::host {

/// Modules that vfpass may load: those of VFIO drivers (isVfioDriver) and of SoftRoCE.
bool isLoadable(std::string_view module);

/// Runs /sbin/modprobe for this module, with an empty environment and no descriptor of ours. Throws
/// Error when it is not loadable, fails, or does not end before the deadline.
void loadModule(const std::string& module, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
