#include <algorithm>
#include <ostream>
#include <string>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/verify_report.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t largestText = 1024;
constexpr std::size_t largestSum = std::size_t{256} << 10U;

// What the text needs in JSON: control characters and invalid UTF-8 become six bytes or fewer.
std::size_t sizeInJson(char each) { return each >= ' ' && each <= '~' ? 1 : 6; }

// The number of leading bytes that fit, without a part of a UTF-8 character at the end.
std::size_t fitting(const std::string& text, std::size_t limit) {
  std::size_t size = 0;
  std::size_t bytes = 0;
  while (bytes < text.size() && size + sizeInJson(text[bytes]) <= limit) {
    size += sizeInJson(text[bytes]);
    ++bytes;
  }
  while (bytes != 0 && bytes < text.size() && isContinuation(text[bytes])) {
    --bytes;
  }
  return bytes;
}

// Takes the text's size from `left`.
void shorten(std::string& text, std::size_t& left) {
  const std::size_t kept = fitting(text, std::min(largestText, left));
  if (kept < text.size()) {
    text = text.substr(0, kept) + " (" + std::to_string(text.size() - kept) + " more bytes)";
  }
  std::size_t used = 0;
  for (const char each : text) {
    used += sizeInJson(each);
  }
  left -= std::min(left, used);
}

using Value = nlohmann::json;

// Reports that are read have at most 8 MiB (verification_records.hpp).
constexpr JsonLimits reportLimits{std::size_t{8} << 20U, 32};

// Null for a damaged report.
Value readReport(const std::string& text) {
  try {
    return parseBoundedJson(text, reportLimits);
  } catch (const JsonRefused&) {
    return nullptr;
  }
}

std::optional<Outcome> outcomeIn(const JsonReader& object) {
  const std::string word = object["result"].textOr("");
  for (const Outcome outcome : {Outcome::passed, Outcome::failed, Outcome::notObservable,
                                Outcome::waived, Outcome::warning}) {
    if (wordOf(outcome) == word) {
      return outcome;
    }
  }
  return std::nullopt;
}

void readFinding(const JsonReader& object, std::vector<Finding>& findings) {
  const auto outcome = outcomeIn(object);
  if (!outcome || object["key"].textOr("").empty()) {
    return;
  }
  Finding finding;
  finding.key = object["key"].textOr("");
  finding.subject = object["entry"].textOr("");
  finding.outcome = *outcome;
  finding.observer =
      object["observer"].textOr("") == toString(Observer::host) ? Observer::host : Observer::guest;
  findings.push_back(std::move(finding));
}

// What the figures of verifications and of baselines have in common.
Figure figureOf(const JsonReader& object) {
  Figure figure;
  figure.operation = object["operation"].textOr("");
  figure.memory = object["memory"].textOr("");
  figure.gpu = object["gpu"].textOr("");
  figure.messageBytes = object["message_bytes"].numberOr(0);
  figure.relaxedOrdering = object["relaxed_ordering"].flagOr(false);
  figure.gigabitsPerSecond = object["gigabits_per_second"].figureOrNone().value_or(0);
  return figure;
}

void readFigure(const JsonReader& object, std::vector<Figure>& figures) {
  Figure figure = figureOf(object);
  const auto speed = object["gigabits_per_second"].figureOrNone();
  const auto median = object["median_microseconds"].figureOrNone();
  if ((!speed && !median) || figure.operation.empty()) {
    return;
  }
  figure.subject = object["entry"].textOr("");
  figure.source = object["source"].textOr("");
  figure.limit = object["limit_gigabits_per_second"].figureOrNone();
  figure.besideHost = object["beside_host_gigabits_per_second"].figureOrNone();
  figure.medianMicroseconds = median;
  figure.tailMicroseconds = object["p99_microseconds"].figureOrNone();
  figures.push_back(std::move(figure));
}

// The first finding with this result, as `entry: key: what was seen`.
std::string firstWith(const JsonReader::Elements& findings, const std::string& result) {
  for (const JsonReader& each : findings) {
    if (each["result"].textOr("") == result) {
      const std::string entry = each["entry"].textOr("");
      return (entry.empty() ? "" : entry + ": ") + each["key"].textOr("") + ": " +
             each["seen"].textOr("");
    }
  }
  return {};
}

}  // namespace

void boundTexts(VerifyReport& report) {
  std::size_t left = largestSum;
  for (Finding& finding : report.findings) {
    for (std::string* text :
         {&finding.subject, &finding.expected, &finding.seen, &finding.remedy}) {
      shorten(*text, left);
    }
  }
  for (BaselineComparison& comparison : report.baselines) {
    for (BaselineFactor& factor : comparison.factors) {
      shorten(factor.seen, left);
      shorten(factor.remedy, left);
    }
  }
}

std::optional<SavedVerification> readVerification(const std::string& json) {
  const Value parsed = readReport(json);
  const JsonReader document(parsed);
  SavedVerification saved;
  saved.result = document["result"].textOr("");
  saved.report.time = document["time"].textOr("");
  if (saved.result.empty() || saved.report.time.empty()) {
    return std::nullopt;
  }
  saved.report.peerName = document["peer"].textOr("");
  saved.report.concurrentVfs = document["concurrent_vfs"].numberOr(1);
  for (const JsonReader& each : document["findings"].listOrEmpty()) {
    readFinding(each, saved.report.findings);
  }
  for (const JsonReader& each : document["figures"].listOrEmpty()) {
    readFigure(each, saved.report.figures);
  }
  return saved;
}

std::optional<std::string> lastVerification(const std::optional<std::string>& json) {
  const auto saved = readVerification(json.value_or(""));
  if (!saved) {
    return std::nullopt;
  }
  const std::string result = saved->result == "not_observable" ? "not observable" : saved->result;
  return printable(result) + ", " + printable(saved->report.time);
}

PastVerification readPastVerification(const std::string& json) {
  Value parsed;
  try {
    parsed = parseBoundedJson(json, reportLimits);
  } catch (const JsonRefused& error) {
    return {"", "", std::string("the report cannot be read: ") + error.what()};
  }
  const JsonReader document(parsed);
  PastVerification past{document["time"].textOr(""), document["result"].textOr(""), {}};
  if (past.result.empty()) {
    past.problem = "the report cannot be read: it has no result";
    return past;
  }
  if (past.result != "passed") {
    past.problem = firstWith(document["findings"].listOrEmpty(), past.result);
  }
  std::ranges::replace(past.result, '_', ' ');
  return past;
}

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
  Figure figure = figureOf(object);
  figure.checkedBytes = object["checked_bytes"].numberOr(0);
  const bool valid =
      !figure.operation.empty() && !figure.memory.empty() && figure.gigabitsPerSecond > 0;
  return valid ? std::optional(figure) : std::nullopt;
}

// As large as a file that is read (vfpass/state/verification_records.hpp).
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
  if (const JsonReader settings = document["settings"]; settings.json().is_object()) {
    for (const auto& [name, value] : settings.json().items()) {
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
