#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>

#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// What `vfpass snapshot` wrote.
struct SnapshotReport {
  std::string target;
  std::map<std::string, std::size_t> files;  ///< how many of each name: `class` 114 times
  std::size_t links = 0;
};

/// Which files are in it, so that whoever hands a snapshot on knows what is handed on. JSON:
/// docs/json/snapshot.schema.json.
void writeSnapshot(std::ostream& out, const SnapshotReport& report, const Style& style);

}  // namespace vfpass::report
