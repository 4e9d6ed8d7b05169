#include "vfpass/report/command_reports.hpp"

#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

bool isEmpty(const GuestSetupReport& report) {
  return report.files.empty() && report.ports.empty() && report.actions.empty();
}

void writeFile(std::ostream& out, const GuestFileChange& file, const Style& style) {
  const std::string name = printable(file.path);
  out << '\n' << tinted("# " + file.reason, Tint::muted, style) << '\n';
  out << "--- " << (file.before ? name : "/dev/null") << '\n'
      << "+++ " << (file.after ? name : "/dev/null") << '\n';
  if (!file.mode.empty()) {
    out << "mode " << file.mode << '\n';
  }
  writeDiffLines(out, file.diff, style);
}

void writeImmediateChanges(std::ostream& out, const GuestSetupReport& report) {
  if (!report.ports.empty() || !report.actions.empty()) {
    out << "\nimmediate changes:\n";
  }
  for (const GuestPortChange& port : report.ports) {
    out << "  " << printable(port.entry) << " (" << printable(port.netdev)
        << "): " << printable(join(port.changes, ", ")) << '\n';
  }
  for (const std::string& action : report.actions) {
    out << "  " << printable(action) << '\n';
  }
}

void writeText(std::ostream& out, const GuestSetupReport& report, const Style& style) {
  out << "guest-setup " << (report.undo ? "--undo " : "") << printable(report.domainName) << ": ";
  if (isEmpty(report)) {
    out << "nothing to do\n";
  } else {
    out << counted(report.files.size(), "file") << ", " << counted(report.ports.size(), "interface")
        << " (" << report.tool << ")\n";
  }
  for (const GuestFileChange& file : report.files) {
    writeFile(out, file, style);
  }
  writeImmediateChanges(out, report);
  if (!isEmpty(report) && !report.notes.empty()) {
    out << '\n';
  }
  for (const std::string& note : report.notes) {
    out << "note: " << printable(note) << '\n';
  }
}

void writeJson(std::ostream& out, const GuestSetupReport& report) {
  Json document = newDocument();
  document["domain"] = domainJson(report.domainName, report.domain);
  document["undo"] = report.undo;
  document["tool"] = report.tool;
  document["applied"] = report.applied;
  document["files"] = listJson(report.files, [](const GuestFileChange& file) -> Json {
    return {{"path", file.path},   {"reason", file.reason},         {"before", file.before},
            {"after", file.after}, {"mode", textOrNull(file.mode)}, {"diff", file.diff}};
  });
  document["interfaces"] = listJson(report.ports, [](const GuestPortChange& port) -> Json {
    return {{"entry", port.entry}, {"netdev", port.netdev}, {"changes", port.changes}};
  });
  document["actions"] = report.actions;
  document["notes"] = report.notes;
  writeDocument(out, document);
}

}  // namespace

void writeGuestSetup(std::ostream& out, const GuestSetupReport& report, const Style& style) {
  if (style.json) {
    writeJson(out, report);
  } else {
    writeText(out, report, style);
  }
}

}  // namespace vfpass::report
