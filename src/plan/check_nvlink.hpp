#pragma once

#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Adds a problem for GPUs that could not initialize in the guest because the mapping ignores their
/// board's NVSwitches (topology::judgeNvlink). It is bad input: the mapping must state how NVLink
/// is set up.
void checkNvlink(const AttachInput& input, std::vector<Objection>& objections);

}  // namespace vfpass::plan
