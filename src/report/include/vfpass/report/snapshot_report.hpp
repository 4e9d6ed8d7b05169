#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>

#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// The files that `vfpass snapshot` wrote.
struct SnapshotReport {
  std::string target;
  std::map<std::string, std::size_t> files;  ///< number of files per name: 114 of `class`
  std::size_t links = 0;
};

/// Lists the files of a snapshot, so that users know what they pass on with it. JSON:
/// docs/json/snapshot.schema.json.
void writeSnapshot(std::ostream& out, const SnapshotReport& report, const Style& style);

}  // namespace vfpass::report
