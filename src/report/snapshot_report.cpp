#include "vfpass/report/snapshot_report.hpp"

#include <ostream>

#include "json.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {

void writeSnapshot(std::ostream& out, const SnapshotReport& report, const Style& style) {
  std::size_t total = 0;
  for (const auto& [name, count] : report.files) {
    total += count;
  }
  if (style.json) {
    Json document = newDocument();
    document["target"] = report.target;
    document["links"] = report.links;
    document["files"] = Json::object();
    for (const auto& [name, count] : report.files) {
      document["files"][name] = count;
    }
    writeDocument(out, document);
    return;
  }
  out << printable(report.target) << ": " << total << " files, " << report.links << " links\n";
  for (const auto& [name, count] : report.files) {
    out << "  " << printable(name) << ' ' << count << '\n';
  }
}

}  // namespace vfpass::report
