#pragma once

#include <iosfwd>
#include <string>

#include "vfpass/plan.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// `vfpass plan` and `--dry-run`: numbered steps with their reasons, marked where somebody on the
/// host can notice them, then the change to the domain's XML as a unified diff (empty: none).
/// JSON: docs/json/plan.schema.json.
void writePlan(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style);

}  // namespace vfpass::report
