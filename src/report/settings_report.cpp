#include "settings_report.hpp"

#include <ostream>

#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

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

}  // namespace

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

void addSettings(const PlanSettings& settings, Json& document) {
  if (settings.settings.empty()) {
    return;
  }
  document["settings"] = Json::array();
  for (const PlanSetting& each : settings.settings) {
    document["settings"].push_back({{"name", each.setting.name},
                                    {"what", each.setting.what},
                                    {"reason", each.setting.reason},
                                    {"standing", toString(each.setting.standing)},
                                    {"applied", each.applied}});
  }
  document["settings_diff"] = settings.xmlDiff;
}

}  // namespace vfpass::report
