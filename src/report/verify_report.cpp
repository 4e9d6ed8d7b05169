#include "vfpass/report/verify_report.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "json.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

Tint tintOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return Tint::good;
    case Outcome::failed:
      return Tint::bad;
    case Outcome::notObservable:
      return Tint::warning;
    case Outcome::waived:
      return Tint::muted;
  }
  return Tint::none;
}

bool isBroken(const Finding& finding) {
  return finding.outcome == Outcome::failed || finding.outcome == Outcome::notObservable;
}

// What counts first: a failure before what could not be seen.
const Finding* firstBroken(const VerifyReport& report) {
  const auto failed = std::ranges::find(report.findings, Outcome::failed, &Finding::outcome);
  const auto found =
      failed != report.findings.end() ? failed : std::ranges::find_if(report.findings, isBroken);
  return found == report.findings.end() ? nullptr : &*found;
}

void writeBroken(std::ostream& out, const Finding& finding) {
  const std::string subject = finding.subject.empty() ? "" : finding.subject + ": ";
  out << "  first broken link: " << printable(subject) << finding.key << '\n'
      << "  expected: " << printable(finding.expected) << '\n'
      << "  seen:     " << printable(finding.seen) << '\n';
  if (!finding.remedy.empty()) {
    out << "  to do:    " << printable(finding.remedy) << '\n';
  }
}

std::string fixed(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << value;
  return text.str();
}

void writeFigures(std::ostream& out, const std::vector<Figure>& figures, const Style& style) {
  Table table({"ENTRY", "OPERATION", "MEMORY", "MESSAGE", "CHECKED", "GB/S (BITS)"});
  for (const auto& each : figures) {
    table.add({{each.subject},
               {each.operation},
               {each.memory},
               {std::to_string(each.messageBytes)},
               {std::to_string(each.checkedBytes)},
               {fixed(each.gigabitsPerSecond)}});
  }
  out << '\n';
  table.write(out, style);
}

void writeText(std::ostream& out, const VerifyReport& report, const Style& style) {
  const Outcome whole = verdict(report);
  const std::string peer =
      report.peerName.empty() ? std::string() : " with " + printable(report.peerName);
  out << printable(report.domainName) << peer << ": "
      << tinted(std::string(toString(whole)), tintOf(whole), style) << '\n';
  if (const Finding* broken = firstBroken(report); broken != nullptr) {
    writeBroken(out, *broken);
  }
  Table table({"CHECK", "ENTRY", "RESULT", "SEEN"});
  for (const auto& each : report.findings) {
    table.add({{each.key},
               {each.subject.empty() ? "-" : each.subject},
               {std::string(toString(each.outcome)), tintOf(each.outcome)},
               {each.seen}});
  }
  out << '\n';
  table.write(out, style);
  if (!report.figures.empty()) {
    writeFigures(out, report.figures, style);
  }
}

std::string word(Outcome outcome) {
  std::string text(toString(outcome));
  std::ranges::replace(text, ' ', '_');
  return text;
}

Json findingJson(const Finding& finding) {
  return {{"key", finding.key},
          {"entry", textOrNull(finding.subject)},
          {"result", word(finding.outcome)},
          {"expected", textOrNull(finding.expected)},
          {"seen", finding.seen},
          {"remedy", textOrNull(finding.remedy)}};
}

Json figureJson(const Figure& figure) {
  return {{"entry", figure.subject},
          {"operation", figure.operation},
          {"memory", figure.memory},
          {"message_bytes", figure.messageBytes},
          {"checked_bytes", figure.checkedBytes},
          {"gigabits_per_second", figure.gigabitsPerSecond}};
}

void writeJson(std::ostream& out, const VerifyReport& report) {
  Json document = newDocument();
  document["domain"] = domainJson(report.domainName, report.domain);
  document["peer"] = textOrNull(report.peerName);
  document["time"] = report.time;
  document["result"] = word(verdict(report));
  document["findings"] = Json::array();
  for (const auto& each : report.findings) {
    document["findings"].push_back(findingJson(each));
  }
  document["figures"] = Json::array();
  for (const auto& each : report.figures) {
    document["figures"].push_back(figureJson(each));
  }
  writeDocument(out, document);
}

// Text from a guest inside XML: printable() has taken control characters, this the markup.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char each : printable(text)) {
    switch (each) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += each;
    }
  }
  return result;
}

void writeCase(std::ostream& out, const Finding& finding) {
  const std::string name =
      finding.subject.empty() ? finding.key : finding.subject + "." + finding.key;
  out << "  <testcase classname=\"vfpass.verify\" name=\"" << escaped(name) << '"';
  const std::string message = escaped("expected " + finding.expected + ", seen " + finding.seen);
  switch (finding.outcome) {
    case Outcome::passed:
      out << "/>\n";
      return;
    case Outcome::failed:
      out << "><failure message=\"" << message << "\">" << escaped(finding.remedy) << "</failure>";
      break;
    case Outcome::notObservable:
      out << "><error message=\"" << message << "\">" << escaped(finding.remedy) << "</error>";
      break;
    case Outcome::waived:
      out << "><skipped message=\"" << escaped(finding.seen) << "\"/>";
      break;
  }
  out << "</testcase>\n";
}

}  // namespace

void writeVerify(std::ostream& out, const VerifyReport& report, const Style& style) {
  if (style.json) {
    writeJson(out, report);
  } else {
    writeText(out, report, style);
  }
}

std::optional<std::string> lastVerification(const std::optional<std::string>& json) {
  const Json document = Json::parse(json.value_or(""), nullptr, false);
  const auto text = [&](const char* name) {
    const auto found = document.is_object() ? document.find(name) : document.end();
    return document.is_object() && found != document.end() && found->is_string()
               ? printable(found->get<std::string>())
               : std::string();
  };
  const std::string result = text("result");
  if (result.empty() || text("time").empty()) {
    return std::nullopt;
  }
  return (result == "not_observable" ? "not observable" : result) + ", " + text("time");
}

void writeVerifyJunit(std::ostream& out, const VerifyReport& report) {
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(report.findings, outcome, &Finding::outcome);
  };
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"vfpass verify "
      << escaped(report.domainName) << "\" timestamp=\"" << escaped(report.time) << "\" tests=\""
      << report.findings.size() << "\" failures=\"" << count(Outcome::failed) << "\" errors=\""
      << count(Outcome::notObservable) << "\" skipped=\"" << count(Outcome::waived) << "\">\n";
  for (const auto& each : report.findings) {
    writeCase(out, each);
  }
  out << "</testsuite>\n";
}

}  // namespace vfpass::report
