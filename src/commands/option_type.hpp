#pragma once

#include <string>

namespace vfpass::commands {

/// The type of an option's value as a user reads it: `NUMBER (0-256)`, `matrix|tree`. CLI11 appends
/// the accepted values in its own notation: `NUMBER:UINT in [0 - 256]`, `FORMAT:{matrix,tree}`.
std::string readableType(const std::string& type);

}  // namespace vfpass::commands
