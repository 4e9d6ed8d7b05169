#include "vfpass/report/verify_report.hpp"

#include <algorithm>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

Json baselineFigureJson(const Figure& figure) {
  return {{"operation", figure.operation},
          {"memory", figure.memory},
          {"gpu", textOrNull(figure.gpu)},
          {"message_bytes", figure.messageBytes},
          {"checked_bytes", figure.checkedBytes},
          {"relaxed_ordering", figure.relaxedOrdering},
          {"gigabits_per_second", figure.gigabitsPerSecond}};
}

void writeBaselineJson(std::ostream& out, const Baseline& baseline) {
  Json document = newDocument();
  document["time"] = baseline.time;
  document["host"] = baseline.host;
  document["machine"] = textOrNull(baseline.machine);
  document["pf"] = toString(baseline.pf);
  document["guid"] = textOrNull(baseline.guid);
  document["serial"] = textOrNull(baseline.serial);
  document["firmware"] = textOrNull(baseline.firmware);
  document["driver"] = textOrNull(baseline.driver);
  Json settings = Json::object();
  for (const auto& [name, value] : baseline.settings) {
    settings[name] = value;
  }
  document["settings"] = settings;
  document["users"] = baseline.users;
  document["unseen_users"] = baseline.unseenUsers;
  document["figures"] = listJson(baseline.figures, baselineFigureJson);
  writeDocument(out, document);
}

void writeBaselineText(std::ostream& out, const Baseline& baseline, const Style& style) {
  out << "baseline of PF " << toString(baseline.pf) << " on " << printable(baseline.host)
      << ", firmware " << printable(textOrNothing(baseline.firmware)) << ", " << baseline.time
      << '\n';
  for (const std::string& user : baseline.users) {
    out << "  warning: used meanwhile, which lowers the figures: " << printable(user) << '\n';
  }
  for (const std::string& reason : baseline.unseenUsers) {
    out << "  warning: not known whether it was used meanwhile: " << printable(reason) << '\n';
  }
  Table figures({"OPERATION", "MEMORY", "MESSAGE", "GBIT/S"});
  for (const Figure& each : baseline.figures) {
    figures.add({{each.operation + (each.relaxedOrdering ? ", relaxed" : "")},
                 {memoryOf(each)},
                 {std::to_string(each.messageBytes)},
                 {rounded(each.gigabitsPerSecond, 3)}});
  }
  out << '\n';
  figures.write(out, style);
  Table settings({"SETTING", "VALUE"});
  for (const auto& [name, value] : baseline.settings) {
    settings.add({{name}, {value}});
  }
  out << '\n';
  settings.write(out, style);
}

std::optional<Figure> readBaselineFigure(const JsonReader& object) {
  Figure figure;
  figure.operation = object["operation"].textOr("");
  figure.memory = object["memory"].textOr("");
  figure.gpu = object["gpu"].textOr("");
  figure.messageBytes = object["message_bytes"].numberOr(0);
  figure.checkedBytes = object["checked_bytes"].numberOr(0);
  figure.relaxedOrdering = object["relaxed_ordering"].flagOr(false);
  figure.gigabitsPerSecond = object["gigabits_per_second"].figureOrNone().value_or(0);
  const bool valid =
      !figure.operation.empty() && !figure.memory.empty() && figure.gigabitsPerSecond > 0;
  return valid ? std::optional(figure) : std::nullopt;
}

// As large as a file that is read (vfpass/state/baselines.hpp).
constexpr JsonLimits baselineLimits{std::size_t{1} << 20U, 8};

nlohmann::json parsedBaseline(const std::string& json) {
  try {
    return parseBoundedJson(json, baselineLimits);
  } catch (const JsonRefused&) {
    return nullptr;
  }
}

}  // namespace

void writeBaseline(std::ostream& out, const Baseline& baseline, const Style& style) {
  if (style.json) {
    writeBaselineJson(out, baseline);
  } else {
    writeBaselineText(out, baseline, style);
  }
}

std::optional<Baseline> readBaseline(const std::string& json) {
  const nlohmann::json parsed = parsedBaseline(json);
  const JsonReader document(parsed);
  const auto pf = parsePciAddress(document["pf"].textOr(""));
  Baseline baseline;
  baseline.time = document["time"].textOr("");
  if (!pf || baseline.time.empty()) {
    return std::nullopt;
  }
  baseline.pf = *pf;
  baseline.host = document["host"].textOr("");
  baseline.machine = document["machine"].textOr("");
  baseline.guid = document["guid"].textOr("");
  baseline.serial = document["serial"].textOr("");
  baseline.firmware = document["firmware"].textOr("");
  baseline.driver = document["driver"].textOr("");
  if (const auto& settings = document["settings"].json(); settings.is_object()) {
    for (const auto& [name, value] : settings.items()) {
      baseline.settings[name] = value.is_string() ? value.get<std::string>() : "";
    }
  }
  for (const JsonReader& user : document["users"].listOrEmpty()) {
    baseline.users.push_back(user.textOr(""));
  }
  if (!document["unseen_users"].json().is_array()) {
    baseline.unseenUsers.emplace_back("not recorded");
  }
  for (const JsonReader& reason : document["unseen_users"].listOrEmpty()) {
    baseline.unseenUsers.push_back(reason.textOr(""));
  }
  for (const JsonReader& each : document["figures"].listOrEmpty()) {
    if (const auto figure = readBaselineFigure(each)) {
      baseline.figures.push_back(*figure);
    }
  }
  return baseline;
}

}  // namespace vfpass::report
