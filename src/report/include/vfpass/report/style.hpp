#pragma once

namespace vfpass::report {

/// Output format of a report.
struct Style {
  bool json = false;
  bool color = false;
};

/// Incremented with every change of the JSON output that may break a reader.
inline constexpr int schemaVersion = 1;

}  // namespace vfpass::report
