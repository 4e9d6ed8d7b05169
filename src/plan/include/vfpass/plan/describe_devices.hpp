#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// What to know about the functions below `gpus:`, one line each: the VFIO driver that they will be
/// bound to, and how they are reset; then what becomes of NVLink, where that is a question.
std::vector<std::string> describeDevices(const AttachInput& input);

}  // namespace vfpass::plan
