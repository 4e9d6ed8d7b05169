#include "vfpass/report/plan_report.hpp"

#include <algorithm>
#include <ostream>

#include "json.hpp"
#include "step_text.hpp"
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

void writeSteps(std::ostream& out, const std::vector<Step>& steps, const Style& style) {
  for (const StepGroup& group : groupSteps(steps)) {
    const std::string label = rangesOf(group.numbers) + ". ";
    const std::string indent(label.size() + 2, ' ');
    out << "  " << label << group.text << '\n';
    for (const std::string& item : group.items) {
      out << indent << "  " << item << '\n';
    }
    writeStepReason(out, indent, *group.first, style,
                    group.numbers.size() == 1 ? "because " : "each because ");
  }
}

bool agreeOn(const topology::DeviceMatrix& one, const topology::DeviceMatrix& other,
             const std::string& device) {
  return std::ranges::all_of(one.names, [&](const std::string& peer) {
    return std::ranges::find(other.names, peer) == other.names.end() ||
           one.between(device, peer) == other.between(device, peer);
  });
}

// Whether all distances between devices of both are the same.
bool agree(const topology::DeviceMatrix& one, const topology::DeviceMatrix& other) {
  return std::ranges::all_of(one.names, [&](const std::string& device) {
    return std::ranges::find(other.names, device) == other.names.end() ||
           agreeOn(one, other, device);
  });
}

void writeMatrix(std::ostream& out, const std::string& title, const topology::DeviceMatrix& matrix,
                 const Style& style) {
  out << '\n';
  writeDeviceMatrix(out, title, matrix, style);
}

// Matrices of twenty devices fill a screen, and say nothing where they are equal.
void writeDistances(std::ostream& out, const PlanDistances& distances, const Style& style) {
  const auto& [host, before, after] = distances;
  const bool asOnHost = host == after;
  if (before.names.size() > 1 && !agree(before, after)) {
    writeMatrix(out, "distances in the guest now", before, style);
  } else if (asOnHost && after.names.size() > 1) {
    out << "\ndistances in the guest after the plan: as on the host\n";
    return;
  }
  if (after.names.size() < 2) {
    return;
  }
  if (!asOnHost) {
    writeMatrix(out, "distances on the host", host, style);
  }
  writeMatrix(
      out,
      std::string("distances in the guest after the plan") + (asOnHost ? ", as on the host" : ""),
      after, style);
}

Json distancesJson(const topology::DeviceMatrix& matrix) {
  const auto cell = [](const auto& distance) {
    return distance ? Json(toString(*distance)) : Json();
  };
  Json rows = listJson(matrix.distances, [&cell](const auto& row) { return listJson(row, cell); });
  return {{"devices", matrix.names}, {"distances", rows}};
}

// The elements of our namespace have this prefix in every version of our metadata.
bool isOurMetadata(std::string_view diffLine) {
  const auto at = diffLine.find_first_not_of(' ', 1);
  return at != std::string_view::npos && (diffLine.substr(at).starts_with("<vfpass:") ||
                                          diffLine.substr(at).starts_with("</vfpass:"));
}

// One line of JSON for each lease, which only vfpass reads, becomes their number.
std::string withoutMetadata(const std::string& diff) {
  std::string text;
  std::size_t folded = 0;
  const auto fold = [&] {
    text += folded == 0 ? "" : "     (" + counted(folded, "line") + " of vfpass's own metadata)\n";
    folded = 0;
  };
  for (const std::string& line : splitLines(diff)) {
    if (!line.empty() && isOurMetadata(line)) {
      ++folded;
      continue;
    }
    fold();
    text += line + '\n';
  }
  fold();
  return text;
}

void writeDiff(std::ostream& out, const std::string& title, const std::string& diff,
               const Style& style) {
  if (!diff.empty()) {
    out << '\n' << title << ":\n";
    writeDiffLines(out, withoutMetadata(diff), style);
  }
}

bool isMissing(const PlanSetting& each) {
  return !each.applied && each.setting.standing != SettingStanding::administrators;
}

void writePlanSummary(std::ostream& out, const Plan& plan, const PlanSettings& settings,
                      const std::string& command, const Style& style) {
  if (command.empty() || plan.steps.empty()) {
    return;
  }
  const auto missing =
      static_cast<std::size_t>(std::ranges::count_if(settings.settings, isMissing));
  const std::string notApplied =
      missing == 0 ? "" : ", " + counted(missing, "setting") + " not applied";
  const std::string line = counted(plan.steps.size(), "step") + notApplied;
  out << '\n' << tinted(line + "; apply with `" + command + "`", Tint::heading, style) << '\n';
}

void writeText(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style,
               const PlanDistances& distances, const PlanSettings& settings, const PlanText& text) {
  const std::string title = std::string(toString(plan.kind)) + " " + plan.domainName + ": ";
  if (plan.steps.empty() && xmlDiff.empty()) {
    out << printable(title) << "nothing to do\n";
  } else {
    out << printable(title) << counted(plan.steps.size(), "step") << '\n';
  }
  writeSteps(out, plan.steps, style);
  for (const auto& note : plan.notes) {
    out << "note: " << printable(note) << '\n';
  }
  writeSettings(out, settings, style);
  writeDistances(out, distances, style);
  if (text.xml) {
    writeDiff(out, "change to the domain's XML", xmlDiff, style);
    writeDiff(out, "further change with `domain-settings: apply`", settings.xmlDiff, style);
  }
  writePlanSummary(out, plan, settings, text.command, style);
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
               const PlanDistances& distances, const PlanSettings& settings, const PlanText& text) {
  if (style.json) {
    writeJson(out, plan, xmlDiff, distances, settings);
  } else {
    writeText(out, plan, xmlDiff, style, distances, settings, text);
  }
}

void writePlans(std::ostream& out, const std::vector<Plan>& plans, const Style& style) {
  if (!style.json) {
    for (const auto& plan : plans) {
      writeText(out, plan, "", style, {}, {}, {});
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
