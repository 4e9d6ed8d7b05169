#include "vfpass/report/verify_report.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <ostream>
#include <tuple>

#include "json.hpp"
#include "markup.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

void writeBroken(std::ostream& out, const Finding& finding) {
  const std::string subject = finding.subject.empty() ? "" : finding.subject + ": ";
  out << "  first problem: " << printable(subject) << finding.key << '\n'
      << "  expected: " << printable(finding.expected) << '\n'
      << "  found:    " << printable(finding.seen) << '\n'
      << "  observer: " << toString(finding.observer) << '\n';
  if (!finding.remedy.empty()) {
    out << "  remedy:   " << printable(finding.remedy) << '\n';
  }
}

std::string fixed(double value) { return rounded(value, 3); }

std::string percent(double share) { return rounded(share * 100, 0) + " %"; }

std::string shareOfLimit(const Figure& figure) {
  if (!figure.limit || *figure.limit <= 0) {
    return "-";
  }
  return showsWrongLimit(figure.gigabitsPerSecond, *figure.limit)
             ? "wrong limit"
             : percent(figure.gigabitsPerSecond / *figure.limit);
}

void writeBandwidths(std::ostream& out, const std::vector<Figure>& figures, const Style& style) {
  Table table({"ENTRY", "OPERATION", "MEMORY", "MESSAGE", "BY", "GBIT/S", "OF LIMIT", "OF HOST"});
  bool any = false;
  for (const auto& each : figures) {
    if (each.medianMicroseconds || each.source == sizeFigures) {
      continue;
    }
    any = true;
    const double figure = each.gigabitsPerSecond;
    table.add(
        {{textOrNothing(each.subject)},
         {each.operation + (each.relaxedOrdering ? ", relaxed" : "")},
         {memoryOf(each)},
         {std::to_string(each.messageBytes)},
         {each.source},
         {fixed(figure)},
         {shareOfLimit(each)},
         {each.besideHost && *each.besideHost > 0 ? percent(figure / *each.besideHost) : "-"}});
  }
  if (any) {
    out << '\n';
    table.write(out, style);
  }
}

// One line for each message size.
void writeSizes(std::ostream& out, const std::vector<Figure>& figures, const Style& style) {
  using Line = std::tuple<std::string, std::string, std::uint64_t>;  // entry, memory, size
  std::map<Line, std::map<std::string, double>> lines;               // Gb/s by operation
  for (const auto& each : figures) {
    if (each.source == sizeFigures) {
      lines[{each.subject, each.memory, each.messageBytes}][each.operation] =
          each.gigabitsPerSecond;
    }
  }
  if (lines.empty()) {
    return;
  }
  Table table({"ENTRY", "MEMORY", "MESSAGE", "WRITE GBIT/S", "READ GBIT/S"});
  for (const auto& [line, speeds] : lines) {
    const auto speed = [&speeds](const char* operation) {
      const auto found = speeds.find(operation);
      return found == speeds.end() ? std::string("-") : fixed(found->second);
    };
    table.add({{textOrNothing(std::get<0>(line))},
               {std::get<1>(line)},
               {std::to_string(std::get<2>(line))},
               {speed("write")},
               {speed("read")}});
  }
  out << '\n';
  table.write(out, style);
}

void writeLatencies(std::ostream& out, const std::vector<Figure>& figures, const Style& style) {
  Table table({"ENTRY", "LATENCY", "MEMORY", "MESSAGE", "BY", "MEDIAN US", "99 % US"});
  bool any = false;
  for (const auto& each : figures) {
    if (!each.medianMicroseconds) {
      continue;
    }
    any = true;
    table.add({{textOrNothing(each.subject)},
               {each.operation},
               {memoryOf(each)},
               {std::to_string(each.messageBytes)},
               {each.source},
               {fixed(*each.medianMicroseconds)},
               {each.tailMicroseconds ? fixed(*each.tailMicroseconds) : "-"}});
  }
  if (any) {
    out << '\n';
    table.write(out, style);
  }
}

// Warnings are checks that work but need attention; problems come before them.
void writeWarnings(std::ostream& out, const std::vector<Finding>& findings) {
  for (const auto& each : findings) {
    if (each.outcome == Outcome::warning) {
      out << "  warning: " << printable(each.subject.empty() ? "" : each.subject + ": ") << each.key
          << ": " << printable(each.seen) << '\n';
      if (!each.remedy.empty()) {
        out << "    remedy: " << printable(each.remedy) << '\n';
      }
    }
  }
}

// One line for each pair, and their sum.
void writeAllPairs(std::ostream& out, const AllPairs& all, const Style& style) {
  Table table({"PAIR", "MEMORY", "ALONE GBIT/S", "TOGETHER GBIT/S", "OF ALONE"});
  for (const auto& pair : all.pairs) {
    table.add({{pair.subject},
               {all.memory},
               {pair.alone > 0 ? fixed(pair.alone) : "-"},
               {fixed(pair.together)},
               {pair.alone > 0 ? percent(pair.together / pair.alone) : "-"}});
  }
  table.add({{"all"}, {all.memory}, {"-"}, {fixed(all.aggregate())}, {"-"}});
  out << '\n';
  table.write(out, style);
}

// One line for each operation and memory of a VF, then what differs from the host itself.
void writeBaselines(std::ostream& out, const std::vector<BaselineComparison>& all,
                    const Style& style) {
  if (all.empty()) {
    return;
  }
  Table table({"ENTRY", "OPERATION", "MEMORY", "GBIT/S", "ON THE HOST", "OF HOST"});
  Table factors({"ENTRY", "DIFFERS FROM HOST", "FOUND", "REMEDY"});
  bool any = false;
  for (const BaselineComparison& each : all) {
    for (const BaselineRatio& ratio : each.ratios) {
      table.add({{each.subject},
                 {ratio.operation},
                 {ratio.gpu.empty() ? ratio.memory : ratio.memory + " " + ratio.gpu},
                 {fixed(ratio.guest)},
                 {fixed(ratio.host)},
                 {percent(ratio.share())}});
    }
    for (const BaselineFactor& factor : each.factors) {
      any = true;
      factors.add({{each.subject}, {factor.name}, {factor.seen}, {textOrNothing(factor.remedy)}});
    }
  }
  out << '\n';
  table.write(out, style);
  if (any) {
    out << '\n';
    factors.write(out, style);
  }
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
  writeWarnings(out, report.findings);
  Table table({"CHECK", "ENTRY", "OBSERVED BY", "RESULT", "FOUND"});
  for (const auto& each : report.findings) {
    table.add({{each.key},
               {textOrNothing(each.subject)},
               {std::string(toString(each.observer))},
               {std::string(toString(each.outcome)), tintOf(each.outcome)},
               {each.seen}});
  }
  out << '\n';
  table.write(out, style);
  if (report.concurrentVfs > 1 && !report.figures.empty()) {
    out << "\nmeasured with up to " << report.concurrentVfs
        << " VFs at the same time; --sequential measures each alone\n";
  }
  writeBandwidths(out, report.figures, style);
  writeSizes(out, report.figures, style);
  writeLatencies(out, report.figures, style);
  for (const auto& each : report.allPairs) {
    writeAllPairs(out, each, style);
  }
  writeBaselines(out, report.baselines, style);
}

Json ratioJson(const BaselineRatio& ratio) {
  return {{"operation", ratio.operation},           {"memory", ratio.memory},
          {"gpu", textOrNull(ratio.gpu)},           {"guest_gigabits_per_second", ratio.guest},
          {"host_gigabits_per_second", ratio.host}, {"share", ratio.share()}};
}

Json factorJson(const BaselineFactor& factor) {
  return {{"name", factor.name}, {"seen", factor.seen}, {"remedy", textOrNull(factor.remedy)}};
}

Json baselineJson(const BaselineComparison& comparison) {
  return {{"entry", comparison.subject},
          {"time", comparison.time},
          {"ratios", listJson(comparison.ratios, ratioJson)},
          {"factors", listJson(comparison.factors, factorJson)}};
}

Json allPairsJson(const AllPairs& all) {
  Json pairs = listJson(all.pairs, [](const auto& pair) -> Json {
    return {{"entry", pair.subject},
            {"alone_gigabits_per_second", pair.alone > 0 ? Json(pair.alone) : Json()},
            {"together_gigabits_per_second", pair.together}};
  });
  return {{"memory", all.memory},
          {"pairs", pairs},
          {"aggregate_gigabits_per_second", all.aggregate()},
          {"overlap_seconds", all.overlapSeconds},
          {"shortest_seconds", all.shortestSeconds}};
}

Json findingJson(const Finding& finding) {
  return {{"key", finding.key},
          {"entry", textOrNull(finding.subject)},
          {"observer", toString(finding.observer)},
          {"result", wordOf(finding.outcome)},
          {"expected", textOrNull(finding.expected)},
          {"seen", finding.seen},
          {"remedy", textOrNull(finding.remedy)}};
}

Json figureJson(const Figure& figure) {
  const bool latency = figure.medianMicroseconds.has_value();
  return {{"entry", textOrNull(figure.subject)},
          {"source", figure.source},
          {"operation", figure.operation},
          {"memory", figure.memory},
          {"gpu", textOrNull(figure.gpu)},
          {"message_bytes", figure.messageBytes},
          {"checked_bytes", figure.checkedBytes},
          {"relaxed_ordering", figure.relaxedOrdering},
          {"gigabits_per_second", latency ? Json(nullptr) : Json(figure.gigabitsPerSecond)},
          {"limit_gigabits_per_second", valueOrNull(figure.limit)},
          {"beside_host_gigabits_per_second", valueOrNull(figure.besideHost)},
          {"median_microseconds", valueOrNull(figure.medianMicroseconds)},
          {"p99_microseconds", valueOrNull(figure.tailMicroseconds)}};
}

void writeJson(std::ostream& out, const VerifyReport& report) {
  Json document = newDocument();
  document["domain"] = domainJson(report.domainName, report.domain);
  document["peer"] = textOrNull(report.peerName);
  document["time"] = report.time;
  document["result"] = wordOf(verdict(report));
  document["concurrent_vfs"] = report.concurrentVfs;
  document["findings"] = listJson(report.findings, findingJson);
  document["figures"] = listJson(report.figures, figureJson);
  document["all_pairs"] = listJson(report.allPairs, allPairsJson);
  document["baselines"] = listJson(report.baselines, baselineJson);
  writeDocument(out, document);
}

void appendProblem(pugi::xml_node testCase, const char* kind, const std::string& message,
                   const std::string& remedy) {
  auto problem = testCase.append_child(kind);
  appendAttribute(problem, "message", message);
  setText(problem, remedy);
}

void appendOutcome(pugi::xml_node testCase, const Finding& finding) {
  const std::string message = "expected " + finding.expected + ", found " + finding.seen;
  switch (finding.outcome) {
    case Outcome::passed:
      break;
    case Outcome::failed:
      appendProblem(testCase, "failure", message, finding.remedy);
      break;
    case Outcome::notObservable:
      appendProblem(testCase, "error", message, finding.remedy);
      break;
    case Outcome::waived:
      appendAttribute(testCase.append_child("skipped"), "message", finding.seen);
      break;
    case Outcome::warning:
      setText(testCase.append_child("system-out"), "warning: " + message + "; " + finding.remedy);
      break;
  }
}

void appendCase(pugi::xml_node suite, const Finding& finding) {
  auto testCase = suite.append_child("testcase");
  appendAttribute(testCase, "classname", "vfpass.verify");
  appendAttribute(testCase, "name",
                  finding.subject.empty() ? finding.key : finding.subject + "." + finding.key);
  appendOutcome(testCase, finding);
}

void appendCount(pugi::xml_node suite, const char* name, const VerifyReport& report,
                 Outcome outcome) {
  const auto count = std::ranges::count(report.findings, outcome, &Finding::outcome);
  appendAttribute(suite, name, std::to_string(count));
}

}  // namespace

void writeVerify(std::ostream& out, const VerifyReport& report, const Style& style) {
  if (style.json) {
    writeJson(out, report);
  } else {
    writeText(out, report, style);
  }
}

void writeVerifyJunit(std::ostream& out, const VerifyReport& report) {
  pugi::xml_document document;
  auto declaration = document.append_child(pugi::node_declaration);
  appendAttribute(declaration, "version", "1.0");
  appendAttribute(declaration, "encoding", "UTF-8");
  auto suite = document.append_child("testsuite");
  appendAttribute(suite, "name", "vfpass verify " + report.domainName);
  appendAttribute(suite, "timestamp", report.time);
  appendAttribute(suite, "tests", std::to_string(report.findings.size()));
  appendCount(suite, "failures", report, Outcome::failed);
  appendCount(suite, "errors", report, Outcome::notObservable);
  appendCount(suite, "skipped", report, Outcome::waived);
  for (const auto& each : report.findings) {
    appendCase(suite, each);
  }
  document.save(out, "  ");
}

}  // namespace vfpass::report
