#pragma once

#include <string>

#include "vfpass/finding.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// Its colour on a terminal.
Tint tintOf(Outcome outcome);

/// Its spelling in JSON: `not_observable`.
std::string wordOf(Outcome outcome);

}  // namespace vfpass::report
