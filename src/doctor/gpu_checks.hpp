#pragma once

#include "check.hpp"

namespace vfpass::doctor {

/// Checks that each GPU can be unbound from its driver: no process has its device files open.
void checkGpuDrivers(const View& view, Results& results);

/// Checks that each GPU can be reset between two guests.
void checkGpuResets(const View& view, Results& results);

/// On a board with NVSwitches, checks that the GPUs of mappings can initialize.
void checkNvlink(const View& view, Results& results);

/// Why checkNvlink does not apply; empty if it does.
std::string withoutNvlinkBoard(const View& view);

}  // namespace vfpass::doctor
