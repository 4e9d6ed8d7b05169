#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `unseen`: a part that could not be read and may hide a problem.
enum class Rank { problem, unseen, warning };

/// Something that another command reports of a VM.
struct DiagnosedItem {
  Rank rank = Rank::problem;
  std::string source;   ///< the command that reports it: `vfpass doctor --vm train0`
  std::string subject;  ///< a check's key and its device, an entry of the mapping; may be empty
  std::string what;
  std::string remedy;  ///< may be empty
};

/// What `vfpass diagnose VM` has found, each rank in the order of the chain: host, hook, leases,
/// guest.
struct DiagnoseReport {
  std::string vm;
  std::vector<DiagnosedItem> items;
};

/// Problems first, then what could not be seen, then warnings; the last line names the first
/// problem. JSON: docs/json/diagnose.schema.json.
void writeDiagnose(std::ostream& out, DiagnoseReport report, const Style& style);

}  // namespace vfpass::report
