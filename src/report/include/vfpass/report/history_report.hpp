#pragma once

#include <iosfwd>
#include <vector>

#include "vfpass/events/history.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// Writes the operations of `vfpass history`, in their order; as JSON by
/// docs/json/history.schema.json.
void writeHistory(std::ostream& out, const std::vector<events::PastOperation>& operations,
                  const Style& style);

}  // namespace vfpass::report
