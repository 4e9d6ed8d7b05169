#include "vfpass/report/plan_report.hpp"

#include <ostream>

#include "settings_report.hpp"
#include "step_lines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/device_matrix_report.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

void writeStep(std::ostream& out, std::size_t number, const Step& step, const Style& style) {
  const std::string label = std::to_string(number) + ". ";
  const std::string indent(label.size() + 2, ' ');
  out << "  " << label << printable(describe(step.action)) << '\n';
  writeStepReason(out, indent, step, style);
}

Tint diffTint(const std::string& line) {
  if (line.starts_with("+")) {
    return Tint::good;
  }
  return line.starts_with("-") ? Tint::bad : Tint::none;
}

void writeDistances(std::ostream& out, const PlanDistances& distances, const Style& style) {
  for (const auto& [title, matrix] :
       {std::pair("distances on the host", &distances.host),
        std::pair("distances in the guest now", &distances.before),
        std::pair("distances in the guest after the plan", &distances.after)}) {
    if (matrix->names.size() > 1) {
      out << '\n';
      writeDeviceMatrix(out, title, *matrix, style);
    }
  }
}

Json distancesJson(const topology::DeviceMatrix& matrix) {
  Json rows = Json::array();
  for (const auto& row : matrix.distances) {
    Json cells = Json::array();
    for (const auto& distance : row) {
      cells.push_back(distance ? Json(toString(*distance)) : Json());
    }
    rows.push_back(std::move(cells));
  }
  return {{"devices", matrix.names}, {"distances", rows}};
}

void writeDiff(std::ostream& out, const std::string& title, const std::string& diff,
               const Style& style) {
  if (!diff.empty()) {
    out << '\n' << title << ":\n";
  }
  for (const auto& line : splitLines(diff)) {
    out << tinted(line, diffTint(line), style) << '\n';
  }
}

void writeText(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style,
               const PlanDistances& distances, const PlanSettings& settings) {
  const std::string title = std::string(toString(plan.kind)) + " " + plan.domainName + ": ";
  if (plan.steps.empty() && xmlDiff.empty()) {
    out << printable(title) << "nothing to do\n";
  } else {
    out << printable(title) << plan.steps.size() << (plan.steps.size() == 1 ? " step" : " steps")
        << '\n';
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    writeStep(out, i + 1, plan.steps[i], style);
  }
  for (const auto& note : plan.notes) {
    out << "note: " << printable(note) << '\n';
  }
  writeSettings(out, settings, style);
  writeDistances(out, distances, style);
  writeDiff(out, "change to the domain's XML", xmlDiff, style);
  writeDiff(out, "further change with `domain-settings: apply`", settings.xmlDiff, style);
}

void addPlan(const Plan& plan, Json& document) {
  document["kind"] = toString(plan.kind);
  document["domain"] = domainJson(plan.domainName, plan.domain);
  document["steps"] = stepsJson(plan.steps);
  document["notes"] = plan.notes;
}

void writeJson(std::ostream& out, const Plan& plan, const std::string& xmlDiff,
               const PlanDistances& distances, const PlanSettings& settings) {
  Json document = newDocument();
  addPlan(plan, document);
  document["xml_diff"] = xmlDiff;
  addSettings(settings, document);
  if (!distances.after.names.empty()) {
    document["distances"] = {{"host", distancesJson(distances.host)},
                             {"guest_before", distancesJson(distances.before)},
                             {"guest_after", distancesJson(distances.after)}};
  }
  writeDocument(out, document);
}

}  // namespace

void writeStepReason(std::ostream& out, const std::string& indent, const Step& step,
                     const Style& style) {
  if (!step.reason.empty()) {
    out << indent << tinted("because " + printable(step.reason), Tint::muted, style) << '\n';
  }
  if (step.disrupts) {
    out << indent << tinted("disrupts: may affect other users of the host", Tint::warning, style)
        << '\n';
  }
}

Json stepsJson(const std::vector<Step>& steps) {
  Json array = Json::array();
  for (const auto& step : steps) {
    array.push_back(
        {{"action", describe(step.action)}, {"reason", step.reason}, {"disrupts", step.disrupts}});
  }
  return array;
}

void writePlan(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style,
               const PlanDistances& distances, const PlanSettings& settings) {
  if (style.json) {
    writeJson(out, plan, xmlDiff, distances, settings);
  } else {
    writeText(out, plan, xmlDiff, style, distances, settings);
  }
}

void writePlans(std::ostream& out, const std::vector<Plan>& plans, const Style& style) {
  if (!style.json) {
    for (const auto& plan : plans) {
      writeText(out, plan, "", style, {}, {});
    }
    return;
  }
  Json document = newDocument();
  document["plans"] = Json::array();
  for (const auto& plan : plans) {
    addPlan(plan, document["plans"].emplace_back(Json::object()));
  }
  writeDocument(out, document);
}

}  // namespace vfpass::report
