#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ostream>

#include "markup.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/report/verify_report.hpp"

namespace vfpass::report {
namespace {

void addTerm(pugi::xml_node list, const char* term, const std::string& text) {
  if (!text.empty()) {
    appendElement(list, "dt", term);
    appendElement(list, "dd", text);
  }
}

void addOrigin(HtmlPage& page, const std::string& origin) {
  if (!origin.empty()) {
    appendElement(page.content(), "p", origin, "facts");
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

bool isQuiet(const Finding& finding) {
  return finding.outcome == Outcome::passed || finding.outcome == Outcome::waived;
}

void addFindingTable(pugi::xml_node parent, const std::vector<Finding>& findings, bool quiet) {
  HtmlTable table(parent, {"Check", "Entry", "Observed by", "Result", "Found", "Remedy"});
  for (const Finding& each : findings) {
    if (isQuiet(each) != quiet) {
      continue;
    }
    auto row = table.addRow();
    appendElement(row, "td", each.key, "key");
    appendElement(row, "td", textOrNothing(each.subject));
    appendElement(row, "td", toString(each.observer));
    appendElement(row, "td", toString(each.outcome), ("result " + wordOf(each.outcome)).c_str());
    appendElement(row, "td", each.seen);
    appendElement(row, "td", each.outcome == Outcome::passed ? "" : each.remedy);
  }
}

// Checks without a problem are a click away, below those with one.
void addFindings(HtmlPage& page, const VerifyReport& report) {
  auto section = page.addSection("Checks");
  const auto quiet = static_cast<std::size_t>(std::ranges::count_if(report.findings, isQuiet));
  if (quiet < report.findings.size()) {
    addFindingTable(section, report.findings, false);
  }
  if (quiet > 0) {
    auto folded = section.append_child("details");
    appendElement(folded, "summary", counted(quiet, "check") + " passed or waived");
    addFindingTable(folded, report.findings, true);
  }
}

// `64 KiB`, `100 B`.
std::string bytesText(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; unit + 1 < units.size() && bytes >= 1024 && bytes % 1024 == 0; ++unit) {
    bytes /= 1024;
  }
  return std::to_string(bytes) + " " + units[unit];
}

// With three significant digits below 1, where one decimal would be 0.0.
std::string bandwidthText(double gigabitsPerSecond) {
  const int decimals = gigabitsPerSecond >= 1 ? 1 : gigabitsPerSecond >= 0.01 ? 3 : 6;
  return rounded(gigabitsPerSecond, decimals) + " Gb/s";
}

std::string microsecondsText(double microseconds) { return rounded(microseconds, 1) + " \u00b5s"; }

void appendNumber(pugi::xml_node row, const std::string& text) {
  appendElement(row, "td", text, "number");
}

// From this share on, `verify` is content with a bandwidth beside its baseline; half of it is a
// slow link or a wrong path.
constexpr double goodShare = 0.9;
constexpr double badShare = 0.5;

const char* barClass(double share) {
  return share >= goodShare ? "bar good" : share >= badShare ? "bar weak" : "bar bad";
}

// A bar of this share, and the share in words.
void appendShare(pugi::xml_node row, double share) {
  const double shown = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * 100 : 0;
  auto cell = appendElement(row, "td", rounded(share * 100, 0) + " %");
  auto bar = appendElement(cell, "div", "", barClass(share));
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
  // The heading, and what may have slowed the transfers down.
  auto section = page.addSection("Bandwidth");
  if (report.concurrentVfs > 1) {
    appendElement(
        section, "p",
        "Measured with up to " + std::to_string(report.concurrentVfs) + " VFs at the same time.");
  }
  HtmlTable table(section, {"Entry", "Operation", "Memory", ">Message", "By", ">Bandwidth",
                            ">Limit", "Of limit"});
  for (const Figure& each : figures) {
    if (!isShown(each)) {
      continue;
    }
    auto row = table.addRow();
    appendElement(row, "td", textOrNothing(each.subject));
    appendElement(row, "td", operationOf(each));
    appendElement(row, "td", memoryOf(each));
    appendNumber(row, bytesText(each.messageBytes));
    appendElement(row, "td", each.source);
    appendNumber(row, bandwidthText(each.gigabitsPerSecond));
    // Beside the limit of its port and PCI Express link.
    if (each.limit && *each.limit > 0) {
      appendNumber(row, bandwidthText(*each.limit));
      if (showsWrongLimit(each.gigabitsPerSecond, *each.limit)) {
        appendElement(row, "td", "wrong limit");
      } else {
        appendShare(row, each.gigabitsPerSecond / *each.limit);
      }
    } else {
      appendNumber(row, "-");
      appendElement(row, "td", "unknown");
    }
  }
}

void addAllPairs(HtmlPage& page, const AllPairs& all) {
  HtmlTable table(page.addSection("All pairs at the same time, " + all.memory + " memory"),
                  {"Pair", ">Alone", ">Together", "Of alone"});
  for (const PairRate& pair : all.pairs) {
    auto row = table.addRow();
    appendElement(row, "td", pair.subject);
    appendNumber(row, pair.alone > 0 ? bandwidthText(pair.alone) : "-");
    appendNumber(row, bandwidthText(pair.together));
    if (pair.alone > 0) {
      appendShare(row, pair.together / pair.alone);
    } else {
      appendElement(row, "td", "-");
    }
  }
  auto sum = table.addRow();
  appendElement(sum, "td", "all");
  appendNumber(sum, "");
  appendNumber(sum, bandwidthText(all.aggregate()));
  appendElement(sum, "td", "at the same time for " + rounded(all.overlapSeconds, 1) + " s");
}

void addSizes(HtmlPage& page, const std::vector<Figure>& figures) {
  if (std::ranges::find(figures, sizeFigures, &Figure::source) == figures.end()) {
    return;
  }
  HtmlTable table(page.addSection("Message sizes"),
                  {"Entry", "Operation", "Memory", ">Message", ">Bandwidth"});
  for (const Figure& each : figures) {
    if (each.source == sizeFigures) {
      auto row = table.addRow();
      appendElement(row, "td", textOrNothing(each.subject));
      appendElement(row, "td", each.operation);
      appendElement(row, "td", each.memory);
      appendNumber(row, bytesText(each.messageBytes));
      appendNumber(row, bandwidthText(each.gigabitsPerSecond));
    }
  }
}

void addLatencies(HtmlPage& page, const std::vector<Figure>& figures) {
  const auto isLatency = [](const Figure& each) { return each.medianMicroseconds.has_value(); };
  if (std::ranges::none_of(figures, isLatency)) {
    return;
  }
  HtmlTable table(page.addSection("Latency"),
                  {"Entry", "Operation", "Memory", ">Message", ">Median", ">99 % within"});
  for (const Figure& each : figures) {
    if (isLatency(each)) {
      auto row = table.addRow();
      appendElement(row, "td", textOrNothing(each.subject));
      appendElement(row, "td", each.operation);
      appendElement(row, "td", memoryOf(each));
      appendNumber(row, bytesText(each.messageBytes));
      appendNumber(row, microsecondsText(*each.medianMicroseconds));
      appendNumber(row, each.tailMicroseconds ? microsecondsText(*each.tailMicroseconds) : "-");
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
    appendElement(row, "td", textOrNothing(each.time));
    std::string cssClass = each.result;
    std::ranges::replace(cssClass, ' ', '_');
    const bool known = cssClass == "passed" || cssClass == "failed" || cssClass == "not_observable";
    appendElement(row, "td", each.result.empty() ? "unreadable" : each.result,
                  known ? ("result " + cssClass).c_str() : "result");
    appendElement(row, "td", each.problem);
  }
}

}  // namespace

void writeVerifyHtml(std::ostream& out, const VerifyReport& report, const std::string& svg,
                     const std::vector<PastVerification>& history, const std::string& origin) {
  HtmlPage page("vfpass verify " + report.domainName);
  addVerdict(page, report);
  addOrigin(page, origin);
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
                       const std::string& words, const std::string& origin) {
  HtmlPage page(title);
  addOrigin(page, origin);
  page.addPicture(page.content(), svg, "NUMA nodes, switches, GPUs, network functions and rails");
  appendElement(page.addSection("In words"), "pre", "", "wide")
      .text()
      .set(printableLines(words).c_str());
  page.write(out);
}

}  // namespace vfpass::report
