#pragma once

#include "check.hpp"

namespace vfpass::doctor {

/// Each GPU can be unbound from its driver: no process has its device files open.
void checkGpuDrivers(const View& view, Results& results);

/// Each GPU can be reset between two guests.
void checkGpuResets(const View& view, Results& results);

/// The GPUs of mappings can initialize, where the host has a board with NVSwitches.
void checkNvlink(const View& view, Results& results);

/// Why that is no question here; empty: it is.
std::string withoutNvlinkBoard(const View& view);

}  // namespace vfpass::doctor
