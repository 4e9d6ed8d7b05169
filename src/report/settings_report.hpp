#pragma once

#include <iosfwd>

#include "json.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// A list of domain settings with their reasons; writes nothing if there are none.
void writeSettings(std::ostream& out, const PlanSettings& settings, const Style& style);

/// Adds `settings` and `settings_diff` to the plan's document, if there are settings.
void addSettings(const PlanSettings& settings, Json& document);

}  // namespace vfpass::report
