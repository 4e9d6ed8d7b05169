#pragma once

#include <iosfwd>
#include <vector>

#include "vfpass/diagnosis.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// `vfpass doctor`: the first broken link in full, what else is broken with its remedy, then one
/// line for each check and outcome. JSON has every finding: docs/json/doctor.schema.json.
void writeDoctor(std::ostream& out, const std::vector<Diagnosis>& diagnoses, const Style& style);

}  // namespace vfpass::report
