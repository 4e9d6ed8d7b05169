#include "vfpass/report/command_reports.hpp"

#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

std::string subject(const CheckEntry& entry) {
  if (entry.vm.empty()) {
    return entry.file.empty() ? "configuration" : entry.file;
  }
  return entry.file.empty() ? entry.vm : entry.vm + " (" + entry.file + ")";
}

Cell verdict(const CheckEntry& entry) {
  if (!entry.problems.empty()) {
    return {counted(entry.problems.size(), "problem"), Tint::bad};
  }
  if (!entry.objections.empty()) {
    return {"cannot be attached, " + counted(entry.objections.size(), "problem"), Tint::bad};
  }
  if (entry.isHostPolicy) {
    return {"valid file; `vfpass host show` compares it with this host", Tint::good};
  }
  if (!entry.pendingSteps) {
    return {"valid file; `vfpass check VM` checks it against this host", Tint::good};
  }
  if (*entry.pendingSteps > 0) {
    return {"valid, " + counted(*entry.pendingSteps, "step") + " pending", Tint::warning};
  }
  return {"valid, nothing to do", Tint::good};
}

// The remedy of an objection can contain lines to paste into the mapping.
void writeLines(std::ostream& out, const std::string& text) {
  for (const auto& line : splitLines(text)) {
    out << "  " << printable(line) << '\n';
  }
}

void writeText(std::ostream& out, const std::vector<CheckEntry>& entries, const Style& style) {
  for (const auto& entry : entries) {
    const Cell cell = verdict(entry);
    out << printable(subject(entry)) << ": " << tinted(cell.text, cell.tint, style) << '\n';
    for (const auto& line : entry.problems) {
      out << "  " << printable(line) << '\n';
    }
    for (const auto& objection : entry.objections) {
      writeLines(out, objection);
    }
    for (const auto& line : entry.facts) {
      out << "  " << printable(line) << '\n';
    }
  }
}

void writeJson(std::ostream& out, const std::vector<CheckEntry>& entries) {
  Json document = newDocument();
  document["mappings"] = listJson(entries, [](const auto& entry) -> Json {
    return {{"kind", entry.isHostPolicy ? "host policy" : "mapping"},
            {"vm", textOrNull(entry.vm)},
            {"file", textOrNull(entry.file)},
            {"problems", entry.problems},
            {"objections", entry.objections},
            {"pending_steps", valueOrNull(entry.pendingSteps)},
            {"facts", entry.facts}};
  });
  writeDocument(out, document);
}

}  // namespace

void writeCheck(std::ostream& out, const std::vector<CheckEntry>& entries, const std::string& place,
                const Style& style) {
  if (style.json) {
    writeJson(out, entries);
  } else if (entries.empty()) {
    out << "no mappings: there is no file " << printable(place) << '\n';
  } else {
    writeText(out, entries, style);
  }
}

}  // namespace vfpass::report
