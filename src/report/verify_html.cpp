#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "first_broken.hpp"
#include "html_page.hpp"
#include "outcome_text.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/report/html_report.hpp"
#include "xml_text.hpp"

namespace vfpass::report {
namespace {

std::string rounded(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

void addTerm(pugi::xml_node list, const char* term, const std::string& text) {
  if (!text.empty()) {
    appendElement(list, "dt", term);
    appendElement(list, "dd", text);
  }
}

void addVerdict(HtmlPage& page, const VerifyReport& report) {
  const Outcome whole = verdict(report);
  auto facts = appendElement(page.content(), "p", "", "facts");
  appendElement(facts, "span", toString(whole), ("verdict " + wordOf(whole)).c_str());
  appendElement(facts, "span",
                (report.peerName.empty() ? "" : "with " + report.peerName + ", ") + report.time);
  const Finding* broken = firstBroken(report);
  if (broken == nullptr) {
    return;
  }
  auto problem = appendElement(page.content(), "section", "", "problem");
  appendElement(
      problem, "strong",
      "First problem: " + (broken->subject.empty() ? "" : broken->subject + ": ") + broken->key);
  auto list = problem.append_child("dl");
  addTerm(list, "expected", broken->expected);
  addTerm(list, "found", broken->seen);
  addTerm(list, "observed by", std::string(toString(broken->observer)));
  addTerm(list, "remedy", broken->remedy);
}

void addFindings(HtmlPage& page, const VerifyReport& report) {
  HtmlTable table(page.addSection("Checks"),
                  {"Check", "Entry", "Observed by", "Result", "Found", "Remedy"});
  for (const Finding& each : report.findings) {
    auto row = table.addRow();
    appendElement(row, "td", each.key, "key");
    appendElement(row, "td", each.subject.empty() ? "-" : each.subject);
    appendElement(row, "td", toString(each.observer));
    appendElement(row, "td", toString(each.outcome), ("result " + wordOf(each.outcome)).c_str());
    appendElement(row, "td", each.seen);
    appendElement(row, "td", each.outcome == Outcome::passed ? "" : each.remedy);
  }
}

void appendNumber(pugi::xml_node row, const std::string& text) {
  appendElement(row, "td", text, "number");
}

// A bar of this share, and the share in words.
void appendShare(pugi::xml_node row, double share) {
  const double shown = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * 100 : 0;
  auto cell = appendElement(row, "td", rounded(share * 100, 0) + " %");
  auto bar = appendElement(cell, "div", "", "bar");
  appendAttribute(bar, "aria-hidden", "true");
  appendAttribute(bar.append_child("span"), "style", "width:" + rounded(shown, 1) + "%");
}

std::string operationOf(const Figure& figure) {
  return figure.operation + (figure.relaxedOrdering ? ", relaxed ordering" : "");
}

void addBandwidths(HtmlPage& page, const VerifyReport& report) {
  const std::vector<Figure>& figures = report.figures;
  const auto isShown = [](const Figure& each) {
    return !each.medianMicroseconds && each.source != sizeFigures;
  };
  if (std::ranges::none_of(figures, isShown)) {
    return;
  }
  auto section = page.addSection("Bandwidth");
  if (report.concurrentVfs > 1) {
    appendElement(
        section, "p",
        "Measured with up to " + std::to_string(report.concurrentVfs) + " VFs at the same time.");
  }
  HtmlTable table(
      section, {"Entry", "Operation", "Memory", ">Message", "By", ">Gbit/s", ">Limit", "Of limit"});
  for (const Figure& each : figures) {
    if (!isShown(each)) {
      continue;
    }
    auto row = table.addRow();
    appendElement(row, "td", each.subject.empty() ? "-" : each.subject);
    appendElement(row, "td", operationOf(each));
    appendElement(row, "td", each.gpu.empty() ? each.memory : each.memory + " " + each.gpu);
    appendNumber(row, std::to_string(each.messageBytes));
    appendElement(row, "td", each.source);
    appendNumber(row, rounded(each.gigabitsPerSecond, 1));
    if (each.limit && *each.limit > 0) {
      appendNumber(row, rounded(*each.limit, 1));
      appendShare(row, each.gigabitsPerSecond / *each.limit);
    } else {
      appendNumber(row, "-");
      appendElement(row, "td", "unknown");
    }
  }
}

void addAllPairs(HtmlPage& page, const AllPairs& all) {
  HtmlTable table(page.addSection("All pairs at the same time, " + all.memory + " memory"),
                  {"Pair", ">Alone Gbit/s", ">Together Gbit/s", "Of alone"});
  for (const PairRate& pair : all.pairs) {
    auto row = table.addRow();
    appendElement(row, "td", pair.subject);
    appendNumber(row, pair.alone > 0 ? rounded(pair.alone, 1) : "-");
    appendNumber(row, rounded(pair.together, 1));
    if (pair.alone > 0) {
      appendShare(row, pair.together / pair.alone);
    } else {
      appendElement(row, "td", "-");
    }
  }
  auto sum = table.addRow();
  appendElement(sum, "td", "all");
  appendNumber(sum, "");
  appendNumber(sum, rounded(all.aggregate(), 1));
  appendElement(sum, "td", "at the same time for " + rounded(all.overlapSeconds, 1) + " s");
}

void addSizes(HtmlPage& page, const std::vector<Figure>& figures) {
  if (std::ranges::find(figures, sizeFigures, &Figure::source) == figures.end()) {
    return;
  }
  HtmlTable table(page.addSection("Message sizes"),
                  {"Entry", "Operation", "Memory", ">Message", ">Gbit/s"});
  for (const Figure& each : figures) {
    if (each.source == sizeFigures) {
      auto row = table.addRow();
      appendElement(row, "td", each.subject.empty() ? "-" : each.subject);
      appendElement(row, "td", each.operation);
      appendElement(row, "td", each.memory);
      appendNumber(row, std::to_string(each.messageBytes));
      appendNumber(row, rounded(each.gigabitsPerSecond, 3));
    }
  }
}

void addLatencies(HtmlPage& page, const std::vector<Figure>& figures) {
  const auto isLatency = [](const Figure& each) { return each.medianMicroseconds.has_value(); };
  if (std::ranges::none_of(figures, isLatency)) {
    return;
  }
  HtmlTable table(page.addSection("Latency"),
                  {"Entry", "Operation", "Memory", ">Message", ">Median us", ">99 % within us"});
  for (const Figure& each : figures) {
    if (isLatency(each)) {
      auto row = table.addRow();
      appendElement(row, "td", each.subject.empty() ? "-" : each.subject);
      appendElement(row, "td", each.operation);
      appendElement(row, "td", each.gpu.empty() ? each.memory : each.memory + " " + each.gpu);
      appendNumber(row, std::to_string(each.messageBytes));
      appendNumber(row, rounded(*each.medianMicroseconds, 1));
      appendNumber(row, rounded(each.tailMicroseconds.value_or(0), 1));
    }
  }
}

void addHistory(HtmlPage& page, const std::vector<PastVerification>& history) {
  auto section = page.addSection("Earlier verifications");
  if (history.empty()) {
    appendElement(section, "p", "none kept");
    return;
  }
  HtmlTable table(section, {"Time (UTC)", "Result", "First problem"});
  for (const PastVerification& each : history) {
    auto row = table.addRow();
    appendElement(row, "td", each.time.empty() ? "-" : each.time);
    std::string cssClass = each.result;
    std::ranges::replace(cssClass, ' ', '_');
    const bool known = cssClass == "passed" || cssClass == "failed" || cssClass == "not_observable";
    appendElement(row, "td", each.result.empty() ? "unreadable" : each.result,
                  known ? ("result " + cssClass).c_str() : "result");
    appendElement(row, "td", each.problem);
  }
}

std::string member(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

// The first finding with this result, as `entry: key: what was seen`.
std::string firstWith(const nlohmann::json& findings, const std::string& result) {
  for (const auto& each : findings) {
    if (member(each, "result") == result) {
      const std::string entry = member(each, "entry");
      return (entry.empty() ? "" : entry + ": ") + member(each, "key") + ": " +
             member(each, "seen");
    }
  }
  return {};
}

}  // namespace

PastVerification readPastVerification(const std::string& json) {
  constexpr JsonLimits limits{std::size_t{8} << 20U, 32};
  nlohmann::json document;
  try {
    document = parseBoundedJson(json, limits);
  } catch (const JsonRefused& error) {
    return {"", "", std::string("the report cannot be read: ") + error.what()};
  }
  PastVerification past{member(document, "time"), member(document, "result"), {}};
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

void writeVerifyHtml(std::ostream& out, const VerifyReport& report, const std::string& svg,
                     const std::vector<PastVerification>& history) {
  HtmlPage page("vfpass verify " + report.domainName);
  addVerdict(page, report);
  addFindings(page, report);
  addBandwidths(page, report);
  for (const AllPairs& each : report.allPairs) {
    addAllPairs(page, each);
  }
  addLatencies(page, report.figures);
  addSizes(page, report.figures);
  if (!svg.empty()) {
    page.addPicture(
        page.addSection("Topology"), svg,
        "Host and guest: NUMA nodes, switches, GPUs, network functions and their rails");
  }
  addHistory(page, history);
  page.write(out);
}

void writeTopologyHtml(std::ostream& out, const std::string& title, const std::string& svg,
                       const std::string& words) {
  HtmlPage page(title);
  page.addPicture(page.content(), svg, "NUMA nodes, switches, GPUs, network functions and rails");
  appendElement(page.addSection("In words"), "pre", "", "wide")
      .text()
      .set(printableLines(words).c_str());
  page.write(out);
}

}  // namespace vfpass::report
