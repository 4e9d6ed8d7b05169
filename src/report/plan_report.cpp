#include "vfpass/report/plan_report.hpp"

#include <ostream>

#include "json.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

void writeStep(std::ostream& out, std::size_t number, const Step& step, const Style& style) {
  const std::string label = std::to_string(number) + ". ";
  const std::string indent(label.size() + 2, ' ');
  out << "  " << label << printable(describe(step.action)) << '\n';
  if (!step.reason.empty()) {
    out << indent << tinted("because " + step.reason, Tint::muted, style) << '\n';
  }
  if (step.disrupts) {
    out << indent << tinted("disrupts: the host can notice this", Tint::warning, style) << '\n';
  }
}

Tint diffTint(const std::string& line) {
  if (line.starts_with("+")) {
    return Tint::good;
  }
  return line.starts_with("-") ? Tint::bad : Tint::none;
}

void writeText(std::ostream& out, const Plan& plan, const std::string& xmlDiff,
               const Style& style) {
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
  if (!xmlDiff.empty()) {
    out << "\nchange to the domain's XML:\n";
  }
  for (const auto& line : splitLines(xmlDiff)) {
    out << tinted(line, diffTint(line), style) << '\n';
  }
}

void writeJson(std::ostream& out, const Plan& plan, const std::string& xmlDiff) {
  Json document = newDocument();
  document["kind"] = toString(plan.kind);
  document["domain"] = domainJson(plan.domainName, plan.domain);
  document["steps"] = Json::array();
  for (const auto& step : plan.steps) {
    document["steps"].push_back(
        {{"action", describe(step.action)}, {"reason", step.reason}, {"disrupts", step.disrupts}});
  }
  document["notes"] = plan.notes;
  document["xml_diff"] = xmlDiff;
  writeDocument(out, document);
}

}  // namespace

void writePlan(std::ostream& out, const Plan& plan, const std::string& xmlDiff,
               const Style& style) {
  if (style.json) {
    writeJson(out, plan, xmlDiff);
  } else {
    writeText(out, plan, xmlDiff, style);
  }
}

}  // namespace vfpass::report
