#pragma once

#include <string>
#include <string_view>

namespace vfpass {

/// The shortest way from one text to the other, line by line, in hunks with three lines of context
/// and without file names; empty when no line differs. Bytes are passed through: escape what comes
/// from outside before it is shown.
std::string unifiedDiff(std::string_view before, std::string_view after);

}  // namespace vfpass
