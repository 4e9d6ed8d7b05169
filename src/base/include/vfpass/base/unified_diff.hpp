#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

/// A unified diff of two texts, in hunks with three lines of context and without file names; empty
/// when no line differs. Bytes are copied unchanged: escape untrusted text before printing it.
std::string unifiedDiff(std::string_view before, std::string_view after);

enum class LineOrigin { both, before, after };

/// One line of a comparison: kept, only in the first text, or only in the second.
struct DiffLine {
  LineOrigin origin = LineOrigin::both;
  std::string_view text;
};

/// The shortest edit script from one list of lines to the other (Myers 1986). Texts that differ in
/// more than 2000 lines are reported as one replacement, because the cost of the search is
/// quadratic.
std::vector<DiffLine> compareLines(const std::vector<std::string_view>& before,
                                   const std::vector<std::string_view>& after);

}  // namespace vfpass
