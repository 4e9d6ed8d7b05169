#pragma once

#include <string>
#include <string_view>

namespace vfpass {

/// A unified diff of two texts, in hunks with three lines of context and without file names; empty
/// when no line differs. Bytes are copied unchanged: escape untrusted text before printing it.
std::string unifiedDiff(std::string_view before, std::string_view after);

}  // namespace vfpass
