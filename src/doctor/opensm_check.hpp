#pragma once

#include "check.hpp"

namespace vfpass::doctor {

/// Checks in every configuration that OpenSM reads on this host that it enables virtual ports.
void checkOpenSm(const View& view, Results& results);

/// Why checkOpenSm does not apply; empty if it does.
std::string withoutInfiniband(const View& view);

}  // namespace vfpass::doctor
