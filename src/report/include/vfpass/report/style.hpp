#pragma once

namespace vfpass::report {

/// How a report is to look.
struct Style {
  bool json = false;
  bool color = false;
};

/// Grows with every change of the JSON output that a reader could stumble over.
inline constexpr int schemaVersion = 1;

}  // namespace vfpass::report
