#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// The actions of a command, one line each. JSON: docs/json/actions.schema.json.
void writeActions(std::ostream& out, const std::vector<std::string>& actions, const Style& style);

}  // namespace vfpass::report
