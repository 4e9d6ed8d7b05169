#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "text_values.hpp"
#include "vfpass/base/bounded_read.hpp"
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

// Reports that are read have at most 8 MiB (report_history.hpp).
constexpr JsonLimits reportLimits{std::size_t{8} << 20U, 32};

// Null for a damaged report.
Value readReport(const std::string& text) {
  try {
    return parseBoundedJson(text, reportLimits);
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

// The first finding with this result, as `entry: key: what was seen`.
std::string firstWith(const Value& findings, const std::string& result) {
  for (const auto& each : findings) {
    if (textIn(each, "result") == result) {
      const std::string entry = textIn(each, "entry");
      return (entry.empty() ? "" : entry + ": ") + textIn(each, "key") + ": " +
             textIn(each, "seen");
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
}

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

PastVerification readPastVerification(const std::string& json) {
  Value document;
  try {
    document = parseBoundedJson(json, reportLimits);
  } catch (const JsonRefused& error) {
    return {"", "", std::string("the report cannot be read: ") + error.what()};
  }
  PastVerification past{textIn(document, "time"), textIn(document, "result"), {}};
  if (past.result.empty()) {
    past.problem = "the report cannot be read: it has no result";
    return past;
  }
  const auto findings = document.find("findings");
  if (past.result != "passed" && findings != document.end() && findings->is_array()) {
    past.problem = firstWith(*findings, past.result);
  }
  std::ranges::replace(past.result, '_', ' ');
  return past;
}

}  // namespace vfpass::report
