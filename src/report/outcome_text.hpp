#pragma once

#include <string>

#include "vfpass/finding.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// How a terminal shows it.
Tint tintOf(Outcome outcome);

/// In documents for programs: `not_observable`.
std::string wordOf(Outcome outcome);

}  // namespace vfpass::report
