#pragma once

#include <string>

#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

/// Throws Error if the deadline of the whole run has passed; `doing` names the current operation.
void requireTimeLeft(const Deadline& deadline, const std::string& doing);

}  // namespace vfpass::probe
