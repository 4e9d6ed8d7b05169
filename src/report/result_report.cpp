#include "vfpass/report/result_report.hpp"

#include "json.hpp"
#include "step_lines.hpp"

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
  Json mistakes = Json::array();
  for (const auto& mistake : error.mistakes()) {
    mistakes.push_back(mistakeJson(mistake));
  }
  return {{"message", error.what()},
          {"remedy", error.remedy()},
          {"exit_code", static_cast<int>(error.code())},
          {"mistakes", std::move(mistakes)}};
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
  document["operations"] = Json::array();
  for (const auto& plan : result.executed) {
    document["operations"].push_back(operationJson(plan));
  }
  document["notes"] = result.notes;
  document["warnings"] = result.warnings;
  document["failures"] = Json::array();
  for (const auto& failure : result.failures) {
    document["failures"].push_back(errorJson(failure));
  }
  writeDocument(out, document);
}

void writeError(std::ostream& out, const Error& error) {
  Json document = newDocument();
  document["error"] = errorJson(error);
  writeDocument(out, document);
}

}  // namespace vfpass::report
