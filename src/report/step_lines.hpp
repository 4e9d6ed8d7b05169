#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "json.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// The lines below a step: its reason, and whether it disrupts others.
void writeStepReason(std::ostream& out, const std::string& indent, const Step& step,
                     const Style& style);

/// Steps as in plan.schema.json.
Json stepsJson(const std::vector<Step>& steps);

}  // namespace vfpass::report
