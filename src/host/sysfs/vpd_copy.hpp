#pragma once

#include <chrono>
#include <string>

namespace vfpass::host {

/// The parts of a `vpd` file that findSerial() needs, read by a guarded process, at their offsets;
/// empty if that takes longer than `deadline`.
std::string readVpdGuarded(int file, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
