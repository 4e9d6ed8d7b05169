#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// One line for each function under `gpus:`: the VFIO driver that it will be bound to and how it is
/// reset; then one line about NVLink if a GPU is on a board with NVSwitches.
std::vector<std::string> describeDevices(const AttachInput& input);

}  // namespace vfpass::plan
