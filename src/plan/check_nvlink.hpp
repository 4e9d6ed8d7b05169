#pragma once

#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// Objects to GPUs that could not initialize in the guest, because their board's NVSwitches are
/// left out of account (topology::judgeNvlink). Bad input: the mapping has to say what becomes of
/// NVLink.
void checkNvlink(const AttachInput& input, std::vector<Objection>& objections);

}  // namespace vfpass::plan
