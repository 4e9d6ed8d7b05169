#pragma once

#include <iosfwd>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `vfpass doctor`: the first problem in full, further problems with their remedies, then one line
/// per check and result. JSON has every finding: docs/json/doctor.schema.json.
void writeDoctor(std::ostream& out, const std::vector<Diagnosis>& diagnoses, const Style& style);

}  // namespace vfpass::report
