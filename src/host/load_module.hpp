#pragma once

#include <chrono>
#include <string>

namespace vfpass::host {

/// Runs /sbin/modprobe for this module, with an empty environment and no descriptor of ours. Throws
/// Error when it fails or does not end before the deadline.
void loadModule(const std::string& module, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
