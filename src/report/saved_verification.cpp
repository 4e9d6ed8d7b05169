#include <nlohmann/json.hpp>

#include "outcome_text.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/verify_report.hpp"

namespace vfpass::report {
namespace {

using Value = nlohmann::json;

// Null for a damaged report. Those that are read have at most 8 MiB (report_history.hpp).
Value readReport(const std::string& text) {
  constexpr JsonLimits limits{std::size_t{8} << 20U, 32};
  try {
    return parseBoundedJson(text, limits);
  } catch (const JsonRefused&) {
    return nullptr;
  }
}

const Value* memberOf(const Value& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

std::string textIn(const Value& object, const char* name) {
  const Value* value = memberOf(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<double> numberIn(const Value& object, const char* name) {
  const Value* value = memberOf(object, name);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>())
                                                : std::nullopt;
}

std::uint64_t countIn(const Value& object, const char* name) {
  const Value* value = memberOf(object, name);
  return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>() : 0;
}

std::optional<Outcome> outcomeIn(const Value& object) {
  const std::string word = textIn(object, "result");
  for (const Outcome outcome : {Outcome::passed, Outcome::failed, Outcome::notObservable,
                                Outcome::waived, Outcome::warning}) {
    if (wordOf(outcome) == word) {
      return outcome;
    }
  }
  return std::nullopt;
}

void readFinding(const Value& object, std::vector<Finding>& findings) {
  const auto outcome = outcomeIn(object);
  if (!outcome || textIn(object, "key").empty()) {
    return;
  }
  Finding finding;
  finding.key = textIn(object, "key");
  finding.subject = textIn(object, "entry");
  finding.outcome = *outcome;
  finding.observer =
      textIn(object, "observer") == toString(Observer::host) ? Observer::host : Observer::guest;
  findings.push_back(std::move(finding));
}

void readFigure(const Value& object, std::vector<Figure>& figures) {
  const auto speed = numberIn(object, "gigabits_per_second");
  const auto median = numberIn(object, "median_microseconds");
  if ((!speed && !median) || textIn(object, "operation").empty()) {
    return;
  }
  const Value* relaxed = memberOf(object, "relaxed_ordering");
  Figure figure;
  figure.subject = textIn(object, "entry");
  figure.source = textIn(object, "source");
  figure.operation = textIn(object, "operation");
  figure.memory = textIn(object, "memory");
  figure.gpu = textIn(object, "gpu");
  figure.messageBytes = countIn(object, "message_bytes");
  figure.relaxedOrdering = relaxed != nullptr && *relaxed == true;
  figure.gigabitsPerSecond = speed.value_or(0);
  figure.limit = numberIn(object, "limit_gigabits_per_second");
  figure.besideHost = numberIn(object, "beside_host_gigabits_per_second");
  figure.medianMicroseconds = median;
  figure.tailMicroseconds = numberIn(object, "p99_microseconds");
  figures.push_back(std::move(figure));
}

template <typename Item>
void readList(const Value& document, const char* name, std::vector<Item>& items,
              void (*read)(const Value&, std::vector<Item>&)) {
  const Value* list = memberOf(document, name);
  if (list != nullptr && list->is_array()) {
    for (const Value& each : *list) {
      read(each, items);
    }
  }
}

}  // namespace

std::optional<SavedVerification> readVerification(const std::string& json) {
  const Value document = readReport(json);
  SavedVerification saved;
  saved.result = textIn(document, "result");
  saved.report.time = textIn(document, "time");
  if (saved.result.empty() || saved.report.time.empty()) {
    return std::nullopt;
  }
  saved.report.peerName = textIn(document, "peer");
  readList(document, "findings", saved.report.findings, readFinding);
  readList(document, "figures", saved.report.figures, readFigure);
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

}  // namespace vfpass::report
