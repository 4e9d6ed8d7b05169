#include "vfpass/report/result_report.hpp"

#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

Json mistakeJson(const Mistake& mistake) {
  return {{"file", mistake.file},
          {"line", mistake.line},
          {"column", mistake.column},
          {"message", mistake.message},
          {"remedy", mistake.remedy}};
}

Json errorJson(const Error& error) {
  return {{"message", error.what()},
          {"remedy", error.remedy()},
          {"exit_code", static_cast<int>(error.code())},
          {"mistakes", listJson(error.mistakes(), mistakeJson)}};
}

// `host apply` has no domain.
Json operationJson(const Plan& plan) {
  return {{"kind", toString(plan.kind)},
          {"domain", plan.domainName.empty() ? Json() : domainJson(plan.domainName, plan.domain)},
          {"steps", stepsJson(plan.steps)},
          {"notes", plan.notes}};
}

}  // namespace

void writeResult(std::ostream& out, const Result& result) {
  Json document = newDocument();
  document["command"] = result.command;
  document["changed"] = !result.executed.empty();
  document["operations"] = listJson(result.executed, operationJson);
  document["notes"] = result.notes;
  document["warnings"] = result.warnings;
  if (!result.kept.commands.empty()) {
    document["kept"] = {{"commands", result.kept.commands},
                        {"unit_name", result.kept.unitName},
                        {"unit", result.kept.unit}};
  }
  document["failures"] = listJson(result.failures, errorJson);
  writeDocument(out, document);
}

void writeError(std::ostream& out, const Error& error) {
  Json document = newDocument();
  document["error"] = errorJson(error);
  writeDocument(out, document);
}

void writeActions(std::ostream& out, const std::vector<std::string>& actions, const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["actions"] = actions;
    writeDocument(out, document);
    return;
  }
  for (const auto& action : actions) {
    out << printable(action) << '\n';
  }
}

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
