#include "vfpass/report/plan_report.hpp"

#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/report/topology_report.hpp"

namespace vfpass::report {
namespace {

std::string standingText(const PlanSetting& each) {
  switch (each.setting.standing) {
    case SettingStanding::proposed:
      return each.applied ? "applied by attach" : "not applied";
    case SettingStanding::manual:
      return "to be done by the administrator";
    case SettingStanding::administrators:
      break;
  }
  return "keeps the administrator's value";
}

/// A list of domain settings with their reasons; writes nothing if there are none.
void writeSettings(std::ostream& out, const PlanSettings& settings, const Style& style) {
  if (settings.settings.empty()) {
    return;
  }
  out << "\ndomain settings:\n";
  for (const PlanSetting& each : settings.settings) {
    out << "  " << each.setting.name << ": " << printable(each.setting.what) << " ("
        << standingText(each) << ")\n    "
        << tinted("because " + printable(each.setting.reason), Tint::muted, style) << '\n';
  }
}

/// Adds `settings` and `settings_diff` to the plan's document, if there are settings.
void addSettings(const PlanSettings& settings, Json& document) {
  if (settings.settings.empty()) {
    return;
  }
  document["settings"] = listJson(settings.settings, [](const PlanSetting& each) -> Json {
    return {{"name", each.setting.name},
            {"what", each.setting.what},
            {"reason", each.setting.reason},
            {"standing", toString(each.setting.standing)},
            {"applied", each.applied}};
  });
  document["settings_diff"] = settings.xmlDiff;
}

void writeStep(std::ostream& out, std::size_t number, const Step& step, const Style& style) {
  const std::string label = std::to_string(number) + ". ";
  const std::string indent(label.size() + 2, ' ');
  out << "  " << label << printable(describe(step.action)) << '\n';
  writeStepReason(out, indent, step, style);
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
  const auto cell = [](const auto& distance) {
    return distance ? Json(toString(*distance)) : Json();
  };
  Json rows = listJson(matrix.distances, [&cell](const auto& row) { return listJson(row, cell); });
  return {{"devices", matrix.names}, {"distances", rows}};
}

void writeDiff(std::ostream& out, const std::string& title, const std::string& diff,
               const Style& style) {
  if (!diff.empty()) {
    out << '\n' << title << ":\n";
  }
  writeDiffLines(out, diff, style);
}

void writeText(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style,
               const PlanDistances& distances, const PlanSettings& settings) {
  const std::string title = std::string(toString(plan.kind)) + " " + plan.domainName + ": ";
  if (plan.steps.empty() && xmlDiff.empty()) {
    out << printable(title) << "nothing to do\n";
  } else {
    out << printable(title) << counted(plan.steps.size(), "step") << '\n';
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
