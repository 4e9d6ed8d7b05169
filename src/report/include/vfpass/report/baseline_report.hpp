#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "vfpass/baseline.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `vfpass verify --baseline`: the figures of a PF on the host itself. JSON:
/// docs/json/baseline.schema.json, which is also what is kept.
void writeBaseline(std::ostream& out, const Baseline& baseline, const Style& style);

/// A kept baseline (JSON of writeBaseline). Figures that cannot be read are missing; nullopt if it
/// is invalid as a whole.
std::optional<Baseline> readBaseline(const std::string& json);

}  // namespace vfpass::report
